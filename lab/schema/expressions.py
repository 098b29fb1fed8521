"""Postgres's own spelling of an expression or a definition, as people write SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

WIDTH = 100
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"[^"]*")""")
_REWRITTEN = (
    (re.compile(r"timestamp with time zone"), "timestamptz"),
    # a literal has the type of what it is compared with or the default of
    (re.compile(r"('(?:[^']|'')*')::(?:text|jsonb|feishu_bot\.\w+)(?:\[\])?"), r"\1"),
    (re.compile(r"\(\(\s*select ([\w.]+\([^()]*\)) as \w+\)\)"), r"(select \1)"),
    (re.compile(r"\(\s*select ([\w.]+\([^()]*\)) as \w+\)"), r"(select \1)"),
    (re.compile(r" = any \(array\[([^\]]*)\]\)"), r" in (\1)"),
    (re.compile(r" <> all \(array\[([^\]]*)\]\)"), r" not in (\1)"),
    (re.compile(r"(\(select [\w.]+\([^()]*\)\)) = (\w+) or \1 = (\w+)"), r"\1 in (\2, \3)"),
    (re.compile(r"(\w+\(\w+\)) >= (\d+) and \1 <= (\d+)"), r"\1 between \2 and \3"),
    (re.compile(r" using btree"), ""),
    (re.compile(r"references ([\w.]+)\("), r"references \1 ("),
    (re.compile(r"\( select"), "(select"),
    (re.compile(r'"left"\('), "left("),
    (re.compile(r"not (\w+|\([^()]*\)) is distinct from"), r"\1 is not distinct from"),
    (re.compile(r">= \((\(\([^()]*\(\)\) ->> \w+\)::timestamptz)\)"), r">= \1"),
)
_JOINED = re.compile(r"\(([^()]+ \|\| [^()]+)\) \|\|")


def readable(text: str) -> str:
    """In lower case, on one line, without the casts and names that Postgres adds by itself."""
    text = " ".join(lowered(text).split())
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    while (joined := _JOINED.sub(r"\1 ||", text)) != text:
        text = joined
    return text


def lowered(text: str) -> str:
    """In lower case but for what stands in quotes."""
    parts = _QUOTED.split(text)
    return "".join(part if n % 2 else part.lower() for n, part in enumerate(parts))


def bare(text: str) -> str:
    """Without a pair of parentheses that holds all of it."""
    inner = text[1:-1]
    if text.startswith("(") and text.endswith(")") and min(_depths(inner), default=0) >= 0:
        return bare(inner)
    return text


def filled(text: str, indent: str = "  ") -> str:
    """In lines of at most `WIDTH`, those after the first indented; not broken within quotes."""
    lines, start = [], len(text) - len(text.lstrip())
    words = re.findall(r"(?:'(?:[^']|'')*'|[^\s'])+", text)
    line = text[:start] + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line += f" {word}"
    return "\n".join([*lines, line])


def conditions(text: str, indent: str) -> str:
    """What `and` and `or` join: a line each where it does not fit into one."""
    found = list(_split(bare(text)))
    if len(indent) + len(bare(text)) <= WIDTH or len(found) == 1:
        return filled(indent + bare(text), indent + "  ")
    return "\n".join(_condition(word, part, indent) for word, part in found)


def _condition(word: str, text: str, indent: str) -> str:
    """One of several, with the word that joins it to those before."""
    grouped = len(list(_split(bare(text)))) > 1
    start = f"{indent}{word}{'(' if grouped else ''}"
    line = f"{start}{bare(text)}{')' if grouped else ''}"
    if len(line) <= WIDTH or not grouped:
        return filled(line, indent + "  ")
    return f"{start}{conditions(text, ' ' * len(start)).lstrip()})"


def _split(text: str) -> Iterator[tuple[str, str]]:
    """The parts that `or`, and if there is none, that `and` joins at the top of `text`."""
    depths = list(_depths(text))
    for word in (" or ", " and "):
        places = [m.start() for m in re.finditer(word, text) if depths[m.start()] == 0]
        places = [n for n in places if not re.search(r"between \S+$", text[:n])]
        if places:
            bounds = [-len(word), *places, len(text)]
            for start, end in pairwise(bounds):
                yield word.lstrip() if start >= 0 else "", text[start + len(word) : end]
            return
    yield "", text


def _depths(text: str) -> Iterator[int]:
    """How many parentheses are open after each character; those in quotes do not count."""
    depth, quoted = 0, False
    for character in text:
        quoted ^= character == "'"
        if not quoted:
            depth += (character == "(") - (character == ")")
        yield depth
