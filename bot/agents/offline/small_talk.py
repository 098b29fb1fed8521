"""Messages that ask for nothing: greetings, thanks, and what is no text. Pure."""

from __future__ import annotations

import re

_ANYBODY = r"(?:\s+(?:there|all|everyone|everybody|team|again))?"
_GREETING = re.compile(
    rf"\W*(?:hello|hi|hey|good\s+(?:morning|afternoon|evening|day)){_ANYBODY}\W*"
    r"|\W*(?:(?:你|您|大家)好[呀啊哦]?|嗨|哈[喽啰]|早[啊呀]?|早安|(?:早上|上午|中午|下午|晚上)好|在吗)\W*",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"\W*(?:many\s+|ok,?\s+|great,?\s+)?(?:thanks|thank\s+you|thx|cheers)"
    r"(?:\s+(?:so\s+much|very\s+much|a\s+lot|again))?\W*"
    r"|\W*(?:好的?[，,\s]*)?(?:非常|十分|太)?(?:谢谢|多谢|感谢|谢了|辛苦了?)[你您啦了啊大家]*\W*",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:\[([a-z ]{1,40})(?:: [^\]\n]{0,500})?\]|!\[(image)\]\([^()\n]*\))\s*")
_KINDS = {
    "voice message": "voice",
    "sticker": "sticker",
    "image": "picture",
    "video": "video",
    "file": "file",
    "folder": "file",
}


def small_talk(text: str) -> str:
    """The key of the answer to a greeting, to thanks, or to a message without text; "" for what
    may ask for something."""
    if _GREETING.fullmatch(text):
        return "greeting"
    if _THANKS.fullmatch(text):
        return "thanks"
    kind = kind_sent(text)
    return f"sent-{_KINDS.get(kind, 'other')}" if kind else ""


def kind_sent(text: str) -> str:
    """What a message without text of its own brings, as it is labelled: `file`, `sticker`; "" where
    there is text."""
    labels = list(_LABEL.finditer(text.strip()))
    if not labels or _LABEL.sub("", text).strip():
        return ""
    return labels[0][1] or labels[0][2]
