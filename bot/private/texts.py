"""What people read of private look-ups, in the language of their question. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.feishu import markup
from bot.languages import Language
from memory.text import one_line

_QUESTION_CHARS = 60

_OFFER: Mapping[Language, str] = {
    "zh": "你在别处告诉过我的内容，也许能帮上这个问题：“{question}”。这条只有你能看到。",
    "en": "Something you told me elsewhere may help with “{question}”. Only you can see this.",
}
SHOW: Mapping[Language, str] = {"zh": "给我看看", "en": "Show me"}
SHARE_HERE: Mapping[Language, str] = {"zh": "分享到这里", "en": "Share here"}
SHARE_THERE: Mapping[Language, str] = {"zh": "分享到群里", "en": "Share in the group"}
GONE: Mapping[Language, str] = {
    "zh": "那条消息已经不在了。",
    "en": "That message is no longer there.",
}


def offer(question: str, language: Language) -> str:
    """The card that offers a private answer, as Markdown."""
    line = one_line(question)
    if len(line) > _QUESTION_CHARS:
        line = line[: _QUESTION_CHARS - 1] + "…"
    return markup.card_markdown(_OFFER[language].format(question=line))
