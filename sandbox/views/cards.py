"""REST views of card entities, and of card updates after a click (open.feishu.cn, cardkit-v1)."""

from typing import Any

from sandbox.http import current_platform, json_body


def create_card() -> dict[str, Any]:
    """POST /cardkit/v1/cards"""
    platform, body = current_platform(), json_body()
    card = platform.cardkit.create(body.get("type"), body.get("data"))
    return {"card_id": card.card_id}


def stream_text(card_id: str, element_id: str) -> dict[str, Any]:
    """PUT /cardkit/v1/cards/:id/elements/:element_id/content"""
    platform, body = current_platform(), json_body()
    platform.cardkit.stream_text(card_id, element_id, body.get("content"), *_order(body))
    return {}


def card_settings(card_id: str) -> dict[str, Any]:
    """PATCH /cardkit/v1/cards/:id/settings"""
    platform, body = current_platform(), json_body()
    platform.cardkit.settings(card_id, body.get("settings"), *_order(body))
    return {}


def update_card(card_id: str) -> dict[str, Any]:
    """PUT /cardkit/v1/cards/:id"""
    platform, body = current_platform(), json_body()
    platform.cardkit.update(card_id, body.get("card"), *_order(body))
    return {}


def batch_update(card_id: str) -> dict[str, Any]:
    """POST /cardkit/v1/cards/:id/batch_update"""
    platform, body = current_platform(), json_body()
    platform.cardkit.batch_update(card_id, body.get("actions"), *_order(body))
    return {}


def _order(body: dict[str, Any]) -> tuple[object, object]:
    return body.get("uuid"), body.get("sequence")
