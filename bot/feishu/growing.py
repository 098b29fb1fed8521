"""Card Markdown of a text that grows, without reading again what is over. Pure."""

from __future__ import annotations

import re

from bot.feishu.markup import card_markdown

# What may change how a paragraph reads that stands further up or down: fences, and the definition
# of a link, whose address may stand in another line.
_FAR_REACHING = re.compile(r"```|~~~|\]:")


class Growing:
    """`card_markdown`, for one text that comes again and again as it grows: its first paragraphs,
    as far as nothing in them reaches further, are escaped once."""

    def __init__(self) -> None:
        self._text = ""
        self._markdown = ""

    def __call__(self, text: str) -> str:
        if "\n\n" not in text:  # a name, or a text that has just begun
            return card_markdown(text)
        if not text.startswith(self._text):
            self._text = self._markdown = ""
        start = len(self._text)
        end = _over(text, start)
        self._markdown += card_markdown(text[start:end])
        self._text = text[:end]
        return self._markdown + card_markdown(text[end:])


def _over(text: str, start: int) -> int:
    """Where the paragraphs end that are complete and stand for themselves; at least `start`."""
    reaching = _FAR_REACHING.search(text, start)
    end = text.rfind("\n\n", start, reaching.start() if reaching else len(text))
    return start if end < 0 else end + 2
