"""Why a chat's history cannot be imported. Pure."""

from __future__ import annotations

from typing import Literal

from bot.feishu.errors import SCOPE_OF_CHAT, Action, FeishuError
from bot.settings import Settings

# not_offered: this installation keeps no memory of groups. secret_mode: the group forbids copying.
# no_scope: the app lacks im:message.group_msg. not_in_chat: the bot is not there (any more).
# unintelligible: Feishu's pages lead nowhere. refused: another refusal. defect: an error of ours.
Refusal = Literal[
    "not_offered",
    "secret_mode",
    "no_scope",
    "not_in_chat",
    "unintelligible",
    "refused",
    "defect",
]

_SECRET_MODE, _SCOPE = 231203, 99991672
_OUT = frozenset({Action.TERMINAL_CHAT, Action.TERMINAL_USER})
_GONE_THREADS = frozenset({Action.WITHOUT_THREAD, Action.TERMINAL_MESSAGE})


def reason_against(settings: Settings) -> Refusal | None:
    """Why there is no import here at all; None where there is."""
    return None if settings.sharing == "chat" else "not_offered"


def refusal_of(error: FeishuError) -> Refusal | None:
    """What Feishu's error means for an import; None where trying again later may help."""
    if error.code == _SECRET_MODE:
        return "secret_mode"
    if error.code in (SCOPE_OF_CHAT, _SCOPE):
        return "no_scope"
    if error.action in _OUT:
        return "not_in_chat"
    return None if error.action.may_pass else "refused"


def is_hidden_thread(error: FeishuError) -> bool:
    """Whether it says only that one thread is not shown to the bot, or is no more."""
    return error.action in _GONE_THREADS
