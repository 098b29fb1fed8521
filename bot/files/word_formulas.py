"""Writes a formula of a Word document in one line, as people type it: (a+b)/2, x_1^2, ∑_(i=1)^n i.
Pure. Source: ECMA-376 part 1, 22.1."""

from __future__ import annotations

from collections.abc import Callable

Parts = Callable[[str], list[str]]  # the texts of the children of that name
Sign = Callable[[str, str], str]  # what a property of that name says, else the default


def formula_text(name: str, parts: Parts, sign: Sign) -> str:
    """The text of an element whose name is one of `FORMULAS`."""
    return _WRITTEN[name](parts, sign)


def _joined(*names_and_signs: str) -> Callable[[Parts, Sign], str]:
    """What stands between signs; a sign alone has an empty name before it."""

    def write(parts: Parts, _: Sign) -> str:
        text = ""
        for before, name in zip(names_and_signs[::2], names_and_signs[1::2], strict=True):
            part = _grouped("".join(parts(name)))
            text += before + part if part else ""
        return text

    return write


def _root(parts: Parts, _: Sign) -> str:
    degree, radicand = "".join(parts("deg")), "".join(parts("e"))
    return f"{_grouped(degree)}√{_grouped(radicand)}"


def _operator(parts: Parts, sign: Sign) -> str:
    limits = _joined("_", "sub", "^", "sup")(parts, sign)
    return f"{sign('chr', '∫')}{limits} {''.join(parts('e'))}"


def _in_brackets(parts: Parts, sign: Sign) -> str:
    inside = sign("sepChr", "|").join(parts("e"))
    return f"{sign('begChr', '(')}{inside}{sign('endChr', ')')}"


def _matrix(parts: Parts, _: Sign) -> str:
    return f"[{'; '.join(parts('mr'))}]"


def _row(parts: Parts, _: Sign) -> str:
    return ", ".join(parts("e"))


def _grouped(text: str) -> str:
    """A part, in brackets where it is more than one number or name."""
    is_whole = not text or text.isalnum() or (text[0] == "(" and text.find(")") == len(text) - 1)
    return text if is_whole else f"({text})"


_WRITTEN: dict[str, Callable[[Parts, Sign], str]] = {
    "f": _joined("", "num", "/", "den"),
    "sSup": _joined("", "e", "^", "sup"),
    "sSub": _joined("", "e", "_", "sub"),
    "sSubSup": _joined("", "e", "_", "sub", "^", "sup"),
    "rad": _root,
    "nary": _operator,
    "d": _in_brackets,
    "m": _matrix,
    "mr": _row,
}
FORMULAS = frozenset(_WRITTEN)
