"""What people read is there in both languages, with the same fields, and somebody asks for it."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.text.languages import Catalogue
from tests.support.rows import every_row

BOT = Path(__file__).parents[4] / "bot"
ENGLISH = sorted(BOT.rglob("*.en.po"))
# Words that people may write, and what the model is told.
_MAY_HOLD_BOTH = {"listening/chat_rules.py"}
_IN_TEMPLATE = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
_QUOTED = re.compile(r"""(["'])(.*?)\1""")
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


@cache
def written(folder: Path) -> tuple[set[str], tuple[str, ...]]:
    """All that stands in quotes in a room, and what those keys begin with that are put together."""
    words, beginnings = set[str](), set[str]()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                beginnings.add(str(node.values[0].value))
    for path in folder.rglob("*.html"):
        parts = " ".join(_IN_TEMPLATE.findall(path.read_text(encoding="utf-8")))
        quoted = [text for _, text in _QUOTED.findall(parts)]
        words.update(quoted)
        beginnings.update(one for one in quoted if one.endswith("_"))
    return words, tuple(one for one in beginnings if one.endswith(("-", "_")))


def imports(tree: ast.Module) -> dict[str, str]:
    """The full name of what each imported name stands for."""
    return {
        one.asname or one.name: f"{node.module}.{one.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }


def catalogue_of(call: ast.Call, module: Path, imported: dict[str, str]) -> Path | None:
    """The English catalogue that `say(...)` or `texts.say(...)` reads; None for another `say`."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in ("say", "say_both", "both", "template"):
        return None
    function = ast.unparse(call.func)
    owner, _, _ = function.rpartition(".")
    full = imported.get(owner or function)
    path = BOT.parent / full.replace(".", "/") if full else module.with_suffix("")
    found = [one.with_name(f"{one.name}.en.po") for one in (path, path.parent)]
    return next((one for one in found if one.exists()), None)


@dataclass(frozen=True)
class Asked:
    """A text that is asked for by a key that is written out."""

    module: Path
    line: int
    catalogue: Path
    key: str
    fields: frozenset[str]


@cache
def asked_for() -> tuple[Asked, ...]:
    return tuple(_asked_for())


def _asked_for() -> Iterator[Asked]:
    for module in sorted(BOT.rglob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imported = imports(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            catalogue = catalogue_of(node, module, imported)
            first = node.args[0]
            for key in [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]:
                if catalogue and isinstance(key, ast.Constant):
                    given = frozenset(str(one.arg) for one in node.keywords)
                    yield Asked(module, node.lineno, catalogue, key.value, given)


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
    words, beginnings = written(path.parent)
    elsewhere = {one.key for one in asked_for() if one.catalogue == path}
    unused = [key for key in read(path) if key not in words | elsewhere]
    assert not [key for key in unused if not key.startswith(beginnings)]


def test_every_key_that_is_asked_for_is_there_and_given_its_fields() -> None:
    texts = {path: read(path) for path in ENGLISH}
    for one in asked_for():
        where = f"{one.module}:{one.line}"
        assert one.key in texts[one.catalogue], where
        needed = set().union(*map(fields, forms(texts[one.catalogue][one.key])))
        assert needed <= one.fields, where


def holds_both(tree: ast.Module) -> bool:
    """Whether texts stand there in both languages: by language, or one where the other is not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            if {"'zh'", "'en'"} <= {
                ast.unparse(key) for key, text in entries if key and says(text)
            }:
                return True
        chooses = isinstance(node, ast.IfExp) and says(node.body) and says(node.orelse)
        if chooses and ast.unparse(node.test).endswith(("== 'zh'", "== 'en'", "chinese")):
            return True
    return False


def says(node: ast.expr) -> bool:
    """Whether words stand in it, other than the name of a language."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    said = [one for one in texts if isinstance(one, str) and one not in ("zh", "en")]
    return any(character.isalpha() for text in said for character in text)


def test_texts_stand_in_catalogues_only() -> None:
    found = {
        str(path.relative_to(BOT))
        for path in BOT.rglob("*.py")
        if holds_both(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == _MAY_HOLD_BOTH


def test_a_text_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        Catalogue(str(BOT / "features" / "digests" / "digesting.py")).say("no-such-text", "en")


@given(file=st.text(), name=st.text())
def test_what_stands_in_a_field_is_data(file: str, name: str) -> None:
    catalogue = Catalogue(str(BOT / "features" / "digests" / "digesting.py"))
    assert catalogue.say("file-by", "en", file=file, name=name) == f"{file} ({name})"


def test_a_number_takes_its_form() -> None:
    catalogue = Catalogue(str(BOT / "features" / "digests" / "digesting.py"))
    assert [catalogue.say("pictures", "en", n=n) for n in (1, 2)] == ["1 picture", "2 pictures"]
    assert [catalogue.say("pictures", "zh", n=n) for n in (1, 2)] == ["图片 1 张", "图片 2 张"]


@every_row(
    ("name", "said"),
    [("Bob", "（由 Bob 设置）"), ("小明", "（由小明设置）"), ("<b>", "（由<b>设置）")],
)
def test_chinese_and_latin_letters_are_a_space_apart(name: str, said: str) -> None:
    catalogue = Catalogue(str(BOT / "features" / "timers.py"))
    assert catalogue.say("by", "zh", name=name) == said


@every_row(("what", "begins"), [("Bob 的“嗨”", "我**回答了** Bob"), ("“嗨”", "我**回答了**“嗨”")])
def test_the_end_of_bold_text_counts_as_its_last_letter(what: str, begins: str) -> None:
    catalogue = Catalogue(str(BOT / "features" / "help.py"))
    assert catalogue.say("answered", "zh", what=what, why="你问了").startswith(begins)
