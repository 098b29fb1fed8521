"""What people read is there in both languages, with the same fields, and somebody asks for it."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.text.catalogues import Catalogue

BOT = Path(__file__).parents[4] / "bot"
ENGLISH = sorted(BOT.rglob("*.en.po"))
_ONE_FORM = {"zh": 1, "en": 2}


def chinese(path: Path) -> Path:
    return path.with_name(path.name.replace(".en.po", ".zh.po"))


def read(path: Path) -> dict[str, polib.POEntry]:
    entries = polib.pofile(str(path), encoding="utf-8", check_for_duplicates=True)
    return {entry.msgid: entry for entry in entries}


def forms(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def constants(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def said(path: Path) -> Iterator[str]:
    """The keys that are written out where a text is asked for."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            if name == "say":
                first = node.args[0]
                both = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                for one in both:
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield one.value


@pytest.mark.parametrize("path", ENGLISH, ids=lambda path: str(path.relative_to(BOT)))
def test_both_languages_say_the_same_with_the_same_fields(path: Path) -> None:
    english, han = read(path), read(chinese(path))
    assert english.keys() == han.keys()
    for key, entry in english.items():
        told = {"en": forms(entry), "zh": forms(han[key])}
        assert all(text for texts in told.values() for text in texts), key
        assert bool(entry.msgid_plural) == bool(han[key].msgid_plural), key
        if entry.msgid_plural:
            assert {language: len(texts) for language, texts in told.items()} == _ONE_FORM, key
        asked = {frozenset(fields(text) - {"n"}) for texts in told.values() for text in texts}
        named = frozenset().union(*asked)
        optional = set((entry.comment or "").split()) & named  # fields one language does without
        assert {one | optional for one in asked} == {named}, key


@pytest.mark.parametrize("path", ENGLISH, ids=lambda path: str(path.relative_to(BOT)))
def test_every_text_is_asked_for(path: Path) -> None:
    assert not read(path).keys() - set(constants(path.parent))


def test_every_key_that_is_asked_for_is_there() -> None:
    for module in sorted(BOT.rglob("*.py")):
        asked = set(said(module))
        here = {key for path in module.parent.glob("*.en.po") for key in read(path)}
        if here:
            assert asked <= here, module


def test_a_text_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        Catalogue(str(BOT / "features" / "digests" / "texts.py")).say("no-such-text", "en")


@given(file=st.text(), name=st.text())
def test_what_stands_in_a_field_is_data(file: str, name: str) -> None:
    catalogue = Catalogue(str(BOT / "features" / "digests" / "texts.py"))
    assert catalogue.say("file-by", "en", file=file, name=name) == f"{file} ({name})"


def test_a_number_takes_its_form() -> None:
    catalogue = Catalogue(str(BOT / "features" / "digests" / "texts.py"))
    assert [catalogue.say("pictures", "en", n=n) for n in (1, 2)] == ["1 picture", "2 pictures"]
    assert [catalogue.say("pictures", "zh", n=n) for n in (1, 2)] == ["图片 1 张", "图片 2 张"]
