"""The notice that stored cards of earlier versions end in. Pure."""

from __future__ import annotations

_NOTICES = (
    "*(offline model: set OPENAI_API_KEY for a real one)*",
    "*（离线模型：设置 OPENAI_API_KEY 后由真正的模型回答）*",
)


def without_notice(text: str) -> str:
    """An answer without the line that told that the offline model gave it."""
    for notice in _NOTICES:
        if notice in text:
            return text.replace(notice, "").rstrip()
    return text
