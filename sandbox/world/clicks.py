"""A person presses a button on a card, and the app's answer is shown.

Source: open.feishu.cn, cardkit-v1 "card callback communication": the app has 3 s, is asked once,
and answers `{}` or a toast. A card in the answer is not played. Codes shown to the person when that
fails: 200340 no address, 200341 no answer in time, 200342 no connection, 200671 not HTTP 200,
200672 wrong shape, 200673 a card.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.cards.forms import tagged
from sandbox.world import events
from sandbox.world.actors import Actors, ControlRefused
from sandbox.world.cardkit import CardKit
from sandbox.world.push import NO_CONNECTION, NO_URL, Attempt, Pusher
from sandbox.world.state import World
from sandbox.world.wire import card_of

# What a field holds at first is under that name, else it is that value.
_FIELDS = (
    ("select_static", "initial_option", ""),
    ("checker", "checked", False),
    ("input", "default_value", ""),
)
_TOASTS = ("info", "success", "error", "warning")


@dataclass(frozen=True)
class Clicked:
    """What the person sees: a toast or None, and an error code or 0."""

    toast: dict[str, Any] | None
    code: int
    status: int
    latency_ms: float


class Clicks:
    """Card callbacks. Raises Refusal when there is nothing to press."""

    def __init__(self, world: World, pusher: Pusher, cardkit: CardKit, actors: Actors) -> None:
        self._world = world
        self._pusher = pusher
        self._cardkit = cardkit
        self._actors = actors

    def click(
        self,
        open_id: str,
        message_id: str,
        *,
        value: object,
        index: int | None,
        form: dict[str, Any] | None = None,
    ) -> Clicked:
        """Press the button with that callback `value`, or the `index`-th, or (value given) forge
        a callback that no button of the card carries. A button that submits sends what is chosen
        in its form: `form` by name, else as the card has it."""
        with self._world.lock:
            message = self._actors.message(message_id)
            person = self._actors.person(open_id)
            if message.visible_to not in ("", open_id) or message.unseen:
                raise ControlRefused(f"{person.name} does not see that card")
            card = card_of(self._world, message)
            if card is None:
                raise ControlRefused("that message is not a card")
            if message.sender != self._world.bot.open_id:
                raise ControlRefused("that card belongs to another app, which hears of the click")
            action = _action(list(buttons(card)), value, index)
            if fields := submitted(card, action.get("name")):
                action["form_value"] = {**fields, **_known(form or {}, fields)}
            envelope = events.clicked(self._world, message, person, action)
            self._cardkit.interacting.add(message.card_id)
        try:
            attempt, body = self._pusher.ask(envelope)
        finally:
            with self._world.lock:
                self._cardkit.interacting.discard(message.card_id)
        return _shown(attempt, body)


def buttons(node: Any) -> Iterator[dict[str, Any]]:
    """All buttons of a card, in reading order."""
    yield from _of_tag(node, "button")


def submitted(node: Any, name: object) -> dict[str, Any]:
    """The fields of the form that the button of that name submits, with what stands in them."""
    for form in _of_tag(node, "form"):
        ours = [one for one in buttons(form) if one.get("form_action_type") == "submit"]
        if name and any(one.get("name") == name for one in ours):
            return {
                one["name"]: one.get(initial, missing)
                for tag, initial, missing in _FIELDS
                for one in _of_tag(form, tag)
            }
    return {}


def _known(form: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    if unknown := form.keys() - fields.keys():
        raise ControlRefused(f"the form has no field {', '.join(sorted(unknown))}")
    return form


def _of_tag(node: Any, tag: str) -> Iterator[dict[str, Any]]:
    return (one for one in tagged(node) if one["tag"] == tag)


def _action(found: list[dict[str, Any]], value: object, index: int | None) -> dict[str, Any]:
    if index is not None:
        if not 0 <= index < len(found):
            raise ControlRefused(f"the card has {len(found)} buttons; there is no button {index}")
        return _pressed(found[index])
    for button in found:
        if (action := _pressed(button))["value"] == value:
            return action
    if value is None:
        raise ControlRefused("give the value or the index of a button")
    return {"value": value, "tag": "button"}


def _pressed(button: dict[str, Any]) -> dict[str, Any]:
    behaviors = button.get("behaviors", [])
    values = [one.get("value") for one in behaviors if one.get("type") == "callback"]
    values.append(button.get("value", {}))  # where a card of version 1 has it
    action: dict[str, Any] = {"value": values[0], "tag": "button"}
    if "name" in button:
        action["name"] = button["name"]
    return action


def _shown(attempt: Attempt, body: bytes) -> Clicked:
    code, answer = _read(attempt, body)
    toast = answer.get("toast")
    if toast is not None and not _is_toast(toast):
        code, toast = 200672, None
    if answer.get("card") is not None and not code:
        code = 200673
    return Clicked(toast, code, attempt.status, attempt.latency_ms)


def _read(attempt: Attempt, body: bytes) -> tuple[int, dict[str, Any]]:
    if attempt.status == 0:
        return {NO_URL: 200340, NO_CONNECTION: 200342}.get(attempt.error, 200341), {}
    if attempt.status != 200:
        return 200671, {}
    try:
        answer = json.loads(body or b"{}")
    except ValueError:
        return 200672, {}
    return (0, answer) if isinstance(answer, dict) else (200672, {})


def _is_toast(toast: object) -> bool:
    if not isinstance(toast, dict):
        return False
    return toast.get("type", "info") in _TOASTS and isinstance(toast.get("content", ""), str)
