"""Why nothing was read from a calendar or written into it: a sentence each. Pure."""

from __future__ import annotations

from typing import Any, Literal

from bot.feishu.calendars import NOT_IN_TENANT
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.text.catalogues import Catalogue
from bot.text.languages import Language

Reason = Literal[
    "not_connected", "not_approved", "app_scope", "busy", "unavailable", "left", "outside",
    "outsiders_read", "private_calendar", "own_private_calendar", "unknown_person",
    "several_people", "past", "far", "no_day", "unclear_time", "no_room", "no_title",
    "long_title", "length", "too_many", "not_taken", "not_set_up",
]  # fmt: skip

_REASONS: dict[int, Reason] = {
    99991679: "not_approved",
    99991672: "app_scope",
    NOT_IN_TENANT: "left",
    1470500: "not_taken",
    **dict.fromkeys((99991400, 190004, 190005, 190010), "busy"),
}

TEXTS = Catalogue(__file__)
say = TEXTS.say


class AgendaRefused(Exception):
    """Nothing was done. `fields` fill the sentence; `scopes`: what the person has not granted."""

    def __init__(self, reason: Reason, *, scopes: tuple[str, ...] = (), **fields: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scopes = scopes
        self.fields = {**fields, "scopes": ", ".join(scopes)}

    def text_in(self, language: Language) -> str:
        """One sentence to people."""
        return say(f"why-{self.reason}", language, **self.fields)


def refusal_of(failure: FeishuFailure, *, name: str = "") -> AgendaRefused:
    """What a failed call means for whoever asked; `name`: of whom it asked."""
    if not isinstance(failure, FeishuError):
        return AgendaRefused("unavailable")
    reason = _REASONS.get(failure.code, "unavailable")
    return AgendaRefused(reason, scopes=failure.scopes, name=name)
