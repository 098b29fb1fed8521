"""A card drawn anew after a press: what was pressed is marked, what cannot be pressed is inert.

The words stay as they are. A card that cannot be drawn anew stays as it is too: a press that comes
again is answered with a toast.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.feishu import cards
from bot.feishu.applink import applink
from bot.outbox.buttons import fields_of
from bot.outbox.foot import Foot, card_foot
from bot.services import Services
from memory.tables.handles import HandleStore

log = structlog.get_logger()


async def redraw(
    services: Services, message_id: str, tenant_key: str, *, again: bool = True
) -> None:
    """Draws the card again as it is now, without `again` where that is pressed. Never raises."""
    try:
        row = await HandleStore(services.rpc).card_to_redraw(message_id, tenant_key)
        if row:
            await _show(services, message_id, {**row, "again": row["again"] and again})
    except Exception as exc:  # noqa: BLE001  the press counts, however the card looks
        log.info("redraw.left", error=type(exc).__name__, code=getattr(exc, "code", None))


async def _show(services: Services, message_id: str, row: Mapping[str, Any]) -> None:
    card = drawn(row, services.now(), applink(services.settings.feishu_domain))
    if row["card_id"]:
        number = row["number"]
        uuid = cards.reply_uuid(row["card_id"], 0, number)
        await services.feishu.update_card(row["card_id"], card, number, uuid)
    else:
        await services.feishu.patch_card(message_id, cards.card_content(card))


def drawn(row: Mapping[str, Any], now: datetime, applink: str) -> dict[str, Any]:
    """The card of a row as `card_to_redraw` gives it; times are in the zone of `now`. Pure."""
    foot = Foot.of_row(row["shown"]) if row["is_last"] else None
    below = card_foot(foot, now, applink=applink, again=row["again"]) if foot else None
    return cards.answer_card(
        row["content"],
        element_id=cards.answer_id(row["turn_id"], row["chunk"]),
        buttons=[_button(button) for button in row["buttons"]],
        foot=below,
        asked=row["asked"] if row["chunk"] == 0 else None,
    )


def _button(button: Mapping[str, Any]) -> cards.Button:
    """`pressed_by`: null, or whether it was this one of its group."""
    pressed_by = button["pressed"]
    label = f"✓ {button['label']}" if pressed_by else button["label"]
    fields = fields_of(button.get("form", ()))
    return cards.Button(
        label,
        {"b": button["id"]},
        disabled=pressed_by is not None,
        fields=fields,
        entry=button.get("entry", 0),
    )
