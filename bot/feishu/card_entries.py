"""A list in a card: the last paragraphs of a text, each with its own buttons beside it. Pure.

Entries are counted from the last, since the beginning of a text may get a mention or a note. On a
narrow screen the buttons stand below their paragraph (`stretch`). What is read back from the
elements is the text as it was given. Source: Feishu, “Column set”, card JSON 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Element = dict[str, Any]

_PARAGRAPH, _LINE = "\n\n", "\n"
_PART = re.compile(r"(entry|below)_[0-9]{1,3}")


def part_entries(markdown: str, most: int) -> tuple[str, Sequence[str]]:
    """The text before the last `most` paragraphs, and those; none of them where nothing would stand
    before."""
    paragraphs = markdown.split(_PARAGRAPH)
    if not 0 < most < len(paragraphs):
        return markdown, ()
    return _PARAGRAPH.join(paragraphs[:-most]), paragraphs[-most:]


def entry_elements(
    entries: Sequence[str], buttons: Mapping[int, Sequence[Element]]
) -> Iterable[Element]:
    """The elements of the paragraphs, with those buttons; both are counted from the last."""
    for number, entry in zip(range(len(entries), 0, -1), entries, strict=True):
        words = list(_words(number, entry))
        yield from [_beside(words, buttons[number])] if buttons.get(number) else words


def is_of_entry(element_id: str) -> bool:
    """Whether the element of that id holds words of an entry."""
    return _PART.fullmatch(element_id) is not None


def joined(parts: Iterable[tuple[str, str]]) -> str:
    """The text of these elements (id, content), as it was before it was parted."""
    text = ""
    for element_id, content in parts:
        text += (_LINE if element_id.startswith("below") else _PARAGRAPH) + content
    return text.removeprefix(_PARAGRAPH)


def _words(number: int, entry: str) -> Iterable[Element]:
    """The first line, and what is said about it, small."""
    first, *rest = entry.split(_LINE, 1)
    yield {"tag": "markdown", "element_id": f"entry_{number}", "content": first}
    for below in rest:
        small = {"tag": "markdown", "element_id": f"below_{number}", "text_size": "notation"}
        yield {**small, "content": below}


def _beside(words: Sequence[Element], buttons: Sequence[Element]) -> Element:
    text = {"tag": "column", "width": "weighted", "weight": 1, "vertical_spacing": "2px"}
    column = {"tag": "column", "width": "auto", "direction": "horizontal"}
    small = [{**button, "size": "small"} for button in buttons]
    return {
        "tag": "column_set",
        "flex_mode": "stretch",
        "horizontal_spacing": "12px",
        "columns": [
            {**text, "elements": list(words)},
            {**column, "horizontal_spacing": "4px", "elements": small},
        ],
    }
