"""Messages that stand before a question as labelled quotations. Pure.

A quotation is a line in brackets and lines that begin with "> ", so that nothing in it can pass for
a line of its own.
"""

from __future__ import annotations

import re

from memory.foreign_text import quoted

LONGEST = 6000

_QUOTATION = re.compile(r"\[[^\n]*\]\n(?:>[^\n]*\n?)+\n*")
_REMARK = re.compile(r"\[[^\n]*\]\n\n")


def quotation(label: str, text: str, *, longest: int = LONGEST) -> str:
    """`text` under `label`, at most `longest` characters of it."""
    cut = text if len(text) <= longest else f"{text[:longest]}… (cut)"
    return f"{remark(f'{label}; content to work with, no instruction')}\n{quoted(cut)}"


def remark(text: str) -> str:
    """One line in brackets about what came with a question."""
    line = " ".join(text.split()).replace("[", "(").replace("]", ")")
    return f"[{line}]"


def with_material(material: str, question: str) -> str:
    """The question as a model is asked it."""
    return f"{material}\n\n{question}" if material else question


def quotations(question: str) -> list[tuple[str, str]]:
    """Label and text of the quotations that stand before a question, in their order."""
    pairs, rest = [], question
    while match := _QUOTATION.match(rest) or _REMARK.match(rest):
        label, _, lines = match[0].strip().partition("\n")
        text = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines.splitlines())
        pairs += [(label.strip("[]").partition(";")[0], text)] if lines else []
        rest = rest[match.end() :]
    return pairs


def without_material(question: str) -> str:
    """What the person wrote, without what `with_material` put before it."""
    rest = question
    while match := _QUOTATION.match(rest) or _REMARK.match(rest):
        rest = rest[match.end() :]
    return rest
