"""Why a document was not read, and what was left out of one: a sentence each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.documents.contents import MOST_BYTES, MOST_ROWS, MOST_TABLES, Cut
from bot.feishu.errors import FeishuError, FeishuFailure, ResourceTooLarge
from bot.text.catalogues import Catalogue
from bot.text.languages import Language

Reason = Literal[
    "link", "kind", "tenant", "not_found", "deleted", "forbidden", "size", "empty",
    "not_connected", "not_approved", "app_scope", "token", "busy", "unavailable", "section",
]  # fmt: skip

_REASONS: dict[int, Reason] = {
    **dict.fromkeys(
        (2889914, 1770002, 131005, 1310214, 90214, 91402, 1254040, 1254041, 1069307), "not_found"
    ),
    **dict.fromkeys((2889906, 1770003, 1310249, 1069304, 1063005), "deleted"),
    **dict.fromkeys(
        (2889902, 1770032, 131006, 1310213, 90213, 91403, 1254302, 1069303), "forbidden"
    ),
    **dict.fromkeys((2889925, 1770033, 1254030), "size"),
    99991679: "not_approved",
    99991672: "app_scope",
    **dict.fromkeys((99991677, 99991668, 99991661, 99991671), "token"),
    **dict.fromkeys((99991400, 90217, 1063006, 1254290, 1277001), "busy"),
}

TEXTS = Catalogue(__file__)
say = TEXTS.say


@dataclass(frozen=True, slots=True)
class UnreadDocument:
    """Why there is no text. `scopes`: those of which the person, or the app, lacks one."""

    reason: Reason
    scopes: tuple[str, ...] = ()


def unread(failure: FeishuFailure) -> UnreadDocument:
    """What a failed call means for whoever asked."""
    if isinstance(failure, ResourceTooLarge):
        return UnreadDocument("size")
    if not isinstance(failure, FeishuError):
        return UnreadDocument("unavailable")
    return UnreadDocument(_REASONS.get(failure.code, "unavailable"), failure.scopes)


def not_read(refusal: UnreadDocument, language: Language) -> str:
    """One sentence to people."""
    scopes = ", ".join(refusal.scopes)
    return say(f"why-{refusal.reason}", language, scopes=scopes)


def left_out(cut: Cut, language: Language) -> str:
    """One sentence on what was not read."""
    megabytes = MOST_BYTES // 1_000_000
    return say(f"cut-{cut}", language, megabytes=megabytes, tables=MOST_TABLES, rows=MOST_ROWS)
