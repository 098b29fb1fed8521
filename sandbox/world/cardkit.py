"""CardKit: card entities, streamed text, settings, whole and partial updates.

Rules (open.feishu.cn, cardkit-v1): an entity is sent once; `sequence` grows strictly over all
operations of a card; text streams only while streaming mode is on, and that ends by itself ten
minutes after it was turned on; 10 operations a second; 30 KB; nothing changes while a person's
click is being answered. A `uuid` that was used before is refused (200770), also for a repeat of
the very same operation: the documentation names the code but not the exception.
"""

import copy
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from sandbox.cards.card_check import (
    MAX_CARD_BYTES,
    CardInvalid,
    check_card,
    find_element,
    parse_card,
)
from sandbox.cards.card_parts import apply_actions
from sandbox.errors import ApiError, card_refused, too_fast_for_gateway
from sandbox.world.entities import Card
from sandbox.world.limits import Limiter
from sandbox.world.state import World

OPERATIONS_PER_S = 10
MAX_CONTENT = 100_000
MAX_SEQUENCE = 2**31 - 1
CARD_LIFE_MS = 14 * 24 * 3600 * 1000

_T = TypeVar("_T")
_DIRECT = {300301, 300302, 300303, 300305, 300313, 300314, 300315, 200860}


class CardKit:
    """The operations on card entities. Call under `world.lock`. Raises ApiError."""

    def __init__(self, world: World, limiter: Limiter) -> None:
        self._world = world
        self._limiter = limiter
        self.interacting: set[str] = set()

    def create(self, kind: object, text: object) -> Card:
        """A new entity from card JSON 2.0."""
        if kind != "card_json" or not isinstance(text, str):
            raise ApiError(10002)
        if not text.strip():
            raise ApiError(300307)
        body = _or_refusal(lambda: parse_card(text))
        self._check(body)
        card_id = "7" + "".join(secrets.choice("0123456789") for _ in range(18))
        card = Card(card_id, body, self._world.now_ms())
        card = replace(card, streaming_since_ms=self._opened(body, 0))
        self._world.put(card)
        return card

    def stream_text(
        self, card_id: str, element_id: str, content: object, uuid: object, sequence: object
    ) -> Card:
        """Replace the whole text of one text element while streaming is on."""
        card = self._begin(card_id, uuid, sequence)
        if not isinstance(content, str) or not 1 <= len(content) <= MAX_CONTENT:
            raise ApiError(10002)
        if not card.streaming_since_ms:
            raise ApiError(200850 if card.timed_out else 300309)
        body = copy.deepcopy(card.body)
        element = find_element(body, element_id)
        if element is None:
            raise ApiError(300313, f"element {element_id} not found")
        if element.get("tag") not in ("markdown", "plain_text", "lark_md"):
            raise ApiError(300310)
        element["content"] = content
        return self._finish(card, body, uuid, sequence)

    def settings(self, card_id: str, text: object, uuid: object, sequence: object) -> Card:
        """Merge `config` and `card_link` into the card."""
        card = self._begin(card_id, uuid, sequence)
        body = copy.deepcopy(card.body)
        merge_settings(body, _json_object(text, ApiError(300122)))
        return self._finish(card, body, uuid, sequence)

    def update(self, card_id: str, wrapped: object, uuid: object, sequence: object) -> Card:
        """Put another card in the place of the whole one."""
        card = self._begin(card_id, uuid, sequence)
        if not isinstance(wrapped, dict) or wrapped.get("type") != "card_json":
            raise ApiError(10002)
        text = wrapped.get("data")
        if not isinstance(text, str) or not text.strip():
            raise ApiError(300307)
        body = _or_refusal(lambda: parse_card(text))
        return self._finish(card, body, uuid, sequence)

    def batch_update(self, card_id: str, text: object, uuid: object, sequence: object) -> Card:
        """Apply a list of actions to settings and elements, all or none."""
        card = self._begin(card_id, uuid, sequence)
        try:
            actions = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            actions = None
        if not isinstance(actions, list):
            raise ApiError(10002)
        body = copy.deepcopy(card.body)
        _or_refusal(lambda: apply_actions(body, actions, merge_settings))
        return self._finish(card, body, uuid, sequence)

    def _begin(self, card_id: str, uuid: object, sequence: object) -> Card:
        card = self._world.cards.get(card_id)
        if card is None:
            raise ApiError(200740)
        if self._world.now_ms() - card.create_ms > CARD_LIFE_MS:
            raise ApiError(200750, "The card entity has expired")
        limited = self._world.switches.rate_limits
        if limited and not self._limiter.allow("card", card_id, OPERATIONS_PER_S):
            raise too_fast_for_gateway(1)
        _check_order(card, uuid, sequence)
        if card_id in self.interacting:
            raise ApiError(200810)
        return self._close_if_due(card)

    def _finish(self, card: Card, body: dict[str, Any], uuid: object, sequence: object) -> Card:
        self._check(body)
        since = self._opened(body, card.streaming_since_ms)
        changed = replace(
            card,
            body=body,
            sequence=int(str(sequence)),
            uuids=(*card.uuids, str(uuid))[-100:] if uuid else card.uuids,
            streaming_since_ms=since,
            timed_out=card.timed_out and not since,
        )
        self._world.put(changed)
        message = self._world.messages.get(card.message_id)
        if message is not None:
            self._world.change(message, update_ms=self._world.now_ms())
        return changed

    def _check(self, body: dict[str, Any]) -> None:
        if len(json.dumps(body, ensure_ascii=False).encode()) > MAX_CARD_BYTES:
            raise ApiError(200860)
        world = self._world
        _or_refusal(
            lambda: check_card(
                body,
                knows_person=lambda open_id: open_id in world.people,
                knows_image=lambda key: key in world.resources,
            )
        )

    def _opened(self, body: dict[str, Any], since_ms: int) -> int:
        if not body.get("config", {}).get("streaming_mode"):
            return 0
        return since_ms or self._world.now_ms()

    def _close_if_due(self, card: Card) -> Card:
        life_ms = self._world.config.stream_life_s * 1000
        since = card.streaming_since_ms
        if not since or self._world.now_ms() - since < life_ms:
            return card
        body = copy.deepcopy(card.body)
        body["config"]["streaming_mode"] = False
        closed = replace(card, body=body, streaming_since_ms=0, timed_out=True)
        self._world.put(closed)
        return closed


def sendable_card(world: World, card_id: str) -> Card:
    """The entity, if it exists and was not sent yet. Raises ApiError."""
    card = world.cards.get(card_id)
    if card is None:
        raise card_refused(200740, "The card entity does not exist", card_id)
    if card.message_id:
        raise card_refused(200780, "The card entity has already been sent", card_id)
    return card


def merge_settings(body: dict[str, Any], settings: dict[str, Any]) -> None:
    """Merge `config` (key by key) and `card_link` of `settings` into the card."""
    if not settings or set(settings) - {"config", "card_link"}:
        raise ApiError(300122)
    config = settings.get("config", {})
    if not isinstance(config, dict):
        raise ApiError(300122)
    body.setdefault("config", {}).update(config)
    if "card_link" in settings:
        body["card_link"] = settings["card_link"]


def _check_order(card: Card, uuid: object, sequence: object) -> None:
    if uuid and (not isinstance(uuid, str) or len(uuid) > 64):
        raise ApiError(10002)
    if isinstance(sequence, bool) or not isinstance(sequence, int):
        raise ApiError(10002)
    if not 1 <= sequence <= MAX_SEQUENCE:
        raise ApiError(10002)
    if uuid and uuid in card.uuids:
        raise ApiError(200770)
    if sequence <= card.sequence:
        raise ApiError(300317)


def _json_object(text: object, refusal: ApiError) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise refusal
    return value


def _or_refusal(check: Callable[[], _T]) -> _T:
    try:
        return check()
    except CardInvalid as exc:
        if exc.code in _DIRECT:
            raise ApiError(exc.code) from None
        if exc.code == 200621:
            text = f"Failed to generate card content, ext={exc.reason}; ErrorValue: {exc.value}"
            raise ApiError(200220, text) from None
        raise card_refused(exc.code, exc.reason, exc.value, exc.path) from None
