"""A card that mentions everybody, where the group lets only its owner and administrators do that:
it goes without the mention, and says so. Pure.

Source: Feishu, "Generic error codes" (11235), "Send message" (230018), "FAQ" of messages.
"""

from __future__ import annotations

import re

from bot.feishu.errors import FeishuError
from bot.outbox.texts import say
from bot.text.languages import language_of

AT_ALL = "<at id=all></at>"
_ONLY_ADMINS = 11235
_GROUP_SETTING = 230018  # does not say which setting: without the mention it may be taken
_SAYS_SO = re.compile(r"(?:mention|at|@)\s*@?all\b|@所有人", re.IGNORECASE)


def is_forbidden(content: str, error: FeishuError) -> bool:
    """Whether Feishu refuses the card for its mention of everybody."""
    codes = {error.code, error.sub_code}
    refuses = codes & {_ONLY_ADMINS, _GROUP_SETTING} or _SAYS_SO.search(error.msg)
    return AT_ALL in content and bool(refuses)


def without_all(content: str) -> str:
    """The card without the mention, with one sentence on that."""
    left = content.replace(f"{AT_ALL} ", "").replace(AT_ALL, "")
    return f"{left}\n\n{say('all-not-mentioned', language_of([left]))}"
