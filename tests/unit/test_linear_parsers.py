"""Time grows with the length of a text for every function that reads one, not only its patterns.

The functions of the pure modules are found in them, so a new one is covered as it is written.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import tomllib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.agenda.times import AgendaRefused
from bot.agents.authority.rules import AskerExchange, authorises, exchange_of
from bot.agents.tools.confirming import confirmation_question
from bot.card_actions.confirmation import consent_of
from bot.documents.document import Section, split_sections
from bot.feishu import content, markup
from bot.feishu.fields import Mention, MessageContent
from bot.feishu.other_events import replies_of
from bot.text import moments
from bot.text.follow_ups import split_follow_ups as answer_parts
from bot.text.languages import language_of
from lab.doubles.processes import ROOT
from memory.models import StoredMessage
from tests.support.hostile_text import grows_too_fast, hostile_texts, seconds_of
from tests.unit.bot.agents.test_pending_texts import PROMPT

NOW = datetime(2026, 11, 27, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai"))
MOST_S = 0.1  # of the event loop, for a line of 20,000 characters
LINE = 20_000

# Not for texts of others: what they are given is made or cut by the product.
OF_OURS = frozenset({"bot.listening.requests.pattern", "memory.dates.read_unit"})

Read = Callable[[str], object]


def found() -> Iterator[tuple[str, Read]]:
    """The public functions of the pure modules that take one text."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (pure,) = (one for one in contracts if one["name"] == "pure modules import no IO")
    for name in _modules(pure["source_modules"]):
        for key, function in vars(importlib.import_module(name)).items():
            if _reads_a_text(function, name) and not key.startswith("_"):
                yield f"{name}.{key}", function


def _modules(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        for one in pkgutil.iter_modules(getattr(importlib.import_module(name), "__path__", ())):
            yield f"{name}.{one.name}"


def _reads_a_text(function: Any, module: str) -> bool:
    if not inspect.isfunction(function) or function.__module__ != module:
        return False
    parameters = inspect.signature(function).parameters.values()
    needed = [one for one in parameters if one.default is one.empty]
    return [one.annotation for one in needed] == ["str"]


def _rendered(kind: str, make: Callable[[str], object]) -> Read:
    mentions = [Mention("@_user_1", "ou_ann", "Ann", is_bot=False, tenant_key="t")]
    return lambda text: content.render_content(kind, json.dumps(make(text)), mentions)


def _message(text: str) -> list[StoredMessage]:
    asked = StoredMessage(1, "user", text, actor_id="ou_ann")
    return [asked, StoredMessage(2, "assistant", f"{text}?")]


FURTHER: dict[str, Read] = {
    "a text message": _rendered("text", lambda text: {"text": text}),
    "a post": _rendered("post", lambda text: {"content": [[{"tag": "text", "text": text}]]}),
    "a post in Markdown": _rendered(
        "post", lambda text: {"content": [[{"tag": "md", "text": text}]]}
    ),
    "a post in two versions": _rendered(
        "post",
        lambda text: {
            "content": [[{"tag": "text", "text": text}]],
            "content_v2": [[{"tag": "md", "text": text[::-1]}]],
        },
    ),
    "a title": _rendered("post", lambda text: {"title": text, "content": []}),
    "a card": _rendered(
        "interactive", lambda text: {"elements": [{"tag": "markdown", "content": text}]}
    ),
    "the name of a file": _rendered("file", lambda text: {"file_name": text, "file_key": "k"}),
    "a yes": consent_of,
    "a time": lambda text: moments.read_moment(text, NOW),
    "a language": lambda text: language_of([text]),
    "a request": lambda text: authorises(
        AskerExchange(text), "set_reminder", {"text": text, "at": "2026-11-28T09:00"}
    ),
    "a note": lambda text: authorises(AskerExchange(text), "create_note", {"title": text}),
    "a slot": lambda text: exchange_of(text, _message(text), "ou_ann").own,
    "a name": lambda text: AskerExchange(f"@{text}", names={"ou_bob": text}).own,
    "an answer": lambda text: answer_parts(text, ()),
    "an answer of names": lambda text: markup.model_text(text, {"ou_ann": text[:50]}),
    "a comment": lambda text: replies_of(text, "ou_ann", note="…"),
    "a section": lambda text: split_sections([Section("", 0, text)]),
    "a pending action": lambda text: confirmation_question(
        "desk__run", {"text": text, text[:9]: [text]}, {}, PROMPT
    ),
}

READERS = {**{name: read for name, read in found() if name not in OF_OURS}, **FURTHER}


def _whole(read: Read) -> Read:
    """Reads to the end of what comes one by one. A refusal is an answer."""

    def whole(text: str) -> None:
        try:
            given = read(text)
            if isinstance(given, Iterator):
                list(given)
        except (ValueError, AgendaRefused):
            return

    return whole


def offences(read: Read) -> Iterator[str]:
    for name, make in hostile_texts():
        if slow := grows_too_fast(_whole(read), make) or _takes_too_long(read, make):
            yield f"{name}: {slow}"


def _takes_too_long(read: Read, make: Callable[[int], str]) -> str | None:
    took = seconds_of(_whole(read), make(LINE))
    if took > MOST_S:  # the machine may have been busy
        took = seconds_of(_whole(read), make(LINE))
    return f"{took:.2f} s for {LINE:,} characters" if took > MOST_S else None


@pytest.mark.parametrize("name", READERS)
def test_a_hostile_text_is_read_in_linear_time(name: str) -> None:
    assert list(offences(READERS[name])) == []


def test_the_functions_are_found() -> None:
    assert len(READERS) > 70


def test_a_slow_parser_is_noticed() -> None:
    def slow(text: str) -> int:
        return sum(one == "[" for at in range(len(text)) for one in text[:at])

    assert any(offences(slow))


@pytest.mark.parametrize("kind", ["text", "post", "interactive", "file"])
def test_nothing_examines_more_than_feishu_can_send(kind: str) -> None:
    make = {
        "text": FURTHER["a text message"],
        "post": FURTHER["a post"],
        "interactive": FURTHER["a card"],
        "file": FURTHER["the name of a file"],
    }[kind]
    whole = make("请" * 2 * content.MOST_CONTENT_BYTES)
    assert isinstance(whole, MessageContent)
    assert len(whole.template.encode()) <= content.MOST_CONTENT_BYTES + len(
        content.SHORTENED_MARK.encode()
    )
