"""What `/import` says, and what can be pressed below it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bot.features.history_import import cards
from bot.features.history_import.importing import Estimate
from bot.features.registry import HOOKS
from bot.hooks import FeatureTurn
from bot.listening.chat_rules import RULES
from bot.outbox.buttons import chosen_values
from bot.text.languages import Language
from memory.scope import memory_context
from memory.tables.imports import HistoryImport
from tests.support.rows import every_row

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY_MS = 86_400_000
CONTEXT = memory_context(
    chat_id="oc_1", root="main", subject="ou_a", actor="ou_a", tenant_key="t", chat_type="group"
)
HERE = FeatureTurn(CONTEXT, "group", "en", "om_1")
IMPORT = HistoryImport(
    id=1,
    tenant_key="t",
    chat_id="oc_1",
    chat_type="group",
    started_by="ou_a",
    since_ms=NOW_MS - 30 * DAY_MS,
    until_ms=NOW_MS,
    state="running",
    phase="chat",
    position="p",
    estimated=10_000,
    pages=50,
    messages=2481,
    report={},
    error="",
    started_ms=NOW_MS - 60_000,
    updated_ms=NOW_MS,
    finished_ms=None,
)
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def told(found: HistoryImport = IMPORT, language: Language = "en", who: str = "Alice") -> str:
    return cards.progress_text(found, language, who=who, now=NOW, page_s=0.5)


def labels(found: HistoryImport, language: Language = "en") -> list[str]:
    here = replace(HERE, language=language)
    return [one.label for one in cards.buttons_of_import(here, found, NOW_MS)]


@every_row("language", LANGUAGES)
@every_row("rule", RULES["history"].choices)
def test_an_import_is_explained_in_three_sentences(language: Language, rule: str) -> None:
    for in_group in (True, False):
        said = cards.intro_text(language, in_group=in_group, rule=rule)
        body = said.split("\n\n", 1)[1]
        assert body.count("." if language == "en" else "。") == 3
        assert "{" not in said


def test_the_preview_says_how_much_how_long_and_who_can_ask() -> None:
    found = Estimate(12_400, 25, NOW_MS - 365 * DAY_MS, 248)
    for rule, reads in (
        ("unstated", "say so with `/settings history shown`"),
        ("shown", "Every member can ask about all of it"),
        ("hidden", "only about what was said since they joined"),
    ):
        said = cards.preview_text(found, "en", now=NOW, in_group=True, rule=rule)
        assert "nothing has been imported yet" in said
        assert "about 12,400 messages, since 26 Nov 2025" in said
        assert "about 25 minutes" in said
        assert reads in said
        assert "tell the group" in said
    own = cards.preview_text(found, "zh", now=NOW, in_group=False, rule="unstated")
    assert "约 12,400 条，最早为 2025年11月26日" in own
    assert "只有你能问到" in own
    assert "群" not in own
    nothing = replace(found, messages=0, oldest_ms=None)
    assert "no messages" in cards.preview_text(nothing, "en", now=NOW, in_group=True, rule="shown")
    long = replace(found, messages=1, minutes=600)
    said = cards.preview_text(long, "en", now=NOW, in_group=True, rule="shown")
    assert "about 1 message," in said
    assert "about 10 hours" in said


def test_the_progress_says_how_far_it_is_and_when_it_ends() -> None:
    assert told().splitlines() == [
        "**I'm importing this group's history**",
        "Since 27 Oct · started by Alice",
        "",
        "2,481 messages so far · 50 pages read",
        "About 25% done · ends 26 Nov at 12:01, and a little later if there are many threads",
    ]
    assert "约完成 25%" in told(language="zh")
    paused = told(replace(IMPORT, state="paused"))
    assert "is paused" in paused
    assert "ends" not in paused
    assert "threads" in told(replace(IMPORT, phase="threads"))
    assert "Almost done" in told(replace(IMPORT, phase="finishing"))
    assert "can't tell yet" in told(replace(IMPORT, estimated=0))
    assert "99%" in told(replace(IMPORT, pages=900))
    whole = told(replace(IMPORT, since_ms=None, chat_type="p2p"), who="")
    assert "our chat" in whole
    assert "\nFrom the beginning\n" in whole
    assert "2,481 messages" in told(replace(IMPORT, state="removing"))


def test_a_name_in_the_progress_opens_no_link() -> None:
    assert "](" not in told(who="[x](http://e.il)")


def test_what_can_be_pressed_follows_from_the_state() -> None:
    assert labels(IMPORT) == ["Refresh", "Pause", "Cancel and remove"]
    assert labels(replace(IMPORT, state="paused")) == ["Resume", "Cancel and remove"]
    assert labels(replace(IMPORT, state="failed")) == ["Try again", "Remove"]
    assert labels(replace(IMPORT, state="removing")) == ["Refresh"]
    done = replace(IMPORT, state="done")
    assert labels(done) == ["Import more", "Remove"]
    assert labels(replace(done, since_ms=None)) == ["Remove"]
    assert labels(done, "zh") == ["导入更早的消息", "移除"]


def test_only_what_reaches_further_back_is_offered_again() -> None:
    assert cards.span_choices(None, NOW_MS) == ("30", "365", "all")
    assert cards.span_choices(IMPORT, NOW_MS + DAY_MS) == ("365", "all")
    year = replace(IMPORT, since_ms=NOW_MS - 400 * DAY_MS)
    assert cards.span_choices(year, NOW_MS) == ("all",)
    assert cards.span_choices(replace(IMPORT, since_ms=None), NOW_MS) == ()
    assert cards.span_start_ms("30", NOW_MS) == IMPORT.since_ms
    assert cards.span_start_ms("all", NOW_MS) is None


@every_row(
    ("values", "span"),
    [
        ({"span": "365"}, "365"),
        ({"span": "9999"}, None),
        ({"span": 365}, None),
        ({"other": "30"}, None),
        ({}, None),
    ],
)
def test_a_choice_counts_only_if_it_was_offered(values: dict[str, Any], span: str | None) -> None:
    form = cards.preview_form(HERE, ("30", "365", "all"))
    assert chosen_values(form.payload["form"], values).get(cards.SPAN) == span


def test_every_button_has_somebody_to_do_it_and_what_decides_counts_once() -> None:
    assert set(cards.TOOLS) <= HOOKS.cards.presses.keys()
    start, never = cards.start_or_not(HERE, {"since_ms": None})
    assert start.group_id == never.group_id
    assert start.payload["arguments"] == {"since_ms": None}
    assert (start.payload["decision"], never.payload["decision"]) == ("confirm", "cancel")
    remove, keep = cards.remove_or_not(HERE)
    assert remove.danger
    assert not keep.danger
    again = (*cards.buttons_of_import(HERE, IMPORT, NOW_MS),)
    assert all(one.payload["again"] for one in again)
