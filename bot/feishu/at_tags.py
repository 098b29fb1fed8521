"""At-tags in the Markdown of received posts and cards. Pure.

Feishu writes `<at id=ou_… mention_key=@_user_1></at>`, for several people at once
`<at ids=ou_…,ou_… mentions_key=@_user_1,@_user_2></at>`, and authors quote or not (seen in
production; Feishu, "Rich text (Markdown)").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest

from bot.feishu.mention_keys import is_joining

# (key of the mention, id, what stands in the tag) → what takes the tag's place; each may be "".
Resolve = Callable[[str, str, str], str]

_TAG = re.compile(
    r"<(?:at|person)(?=[\s/>])([^<>]*)>(?:([^<>]*)</(?:at|person)\s*>)?|</(?:at|person)\s*>", re.I
)
_ATTRIBUTE = re.compile(r"""(?<![a-z_])([a-z_]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""", re.I)
_KEYS = ("mention_key", "mentions_key")
_IDS = ("id", "ids", "user_id", "open_id", "email")


def resolve_at_tags(markdown: str, resolve: Resolve) -> str:
    """`markdown` with each at-tag replaced, apart from the words around it."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return ""
        people = _people(match[1], (match[2] or "").strip().removeprefix("@"), resolve)
        text, start, end = match.string, match.start(), match.end()
        before = " " if people and is_joining(text[start - 1 : start]) else ""
        after = " " if people and is_joining(text[end : end + 1]) else ""
        return f"{before}{people}{after}"

    return _TAG.sub(replace, markdown) if "<" in markdown else markdown


def _people(attributes: str, label: str, resolve: Resolve) -> str:
    values = {
        match[1].lower(): match[2] or match[3] or (match[4] or "").rstrip("/")
        for match in _ATTRIBUTE.finditer(attributes)
    }
    keys, ids = _listed(values, _KEYS), _listed(values, _IDS)
    pairs = list(zip_longest(keys, ids, fillvalue="")) or [("", "")]
    return " ".join(resolve(key, one, label if len(pairs) == 1 else "") for key, one in pairs)


def _listed(values: dict[str, str], names: tuple[str, ...]) -> list[str]:
    value = next((values[name] for name in names if values.get(name)), "")
    return [one.strip() for one in value.split(",")] if value else []
