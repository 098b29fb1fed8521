"""The question on the card of a pending action names all that a yes consents to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.authority.rules import GUARDED
from bot.agents.prompts.prompt import Prompt
from bot.agents.tools.confirming import confirmation_question
from bot.feishu.markup import card_markdown
from bot.text.languages import Language
from memory.models import WorkingMemory

NOW = datetime(2026, 11, 27, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai"))  # a Friday
PROMPT = Prompt(
    bot_name="Memo",
    question="hi",
    history=(),
    subject="Ann",
    working_memory=WorkingMemory(),
    now=NOW,
)


def as_read(told: str) -> str:
    """The text with its plain marks, which stand for themselves until a card is made."""
    return "".join(chr(ord(c) - 0xF000) if 0xF000 < ord(c) < 0xF080 else c for c in told)


def asked(tool: str, language: Language = "en", about: Any = None, **arguments: Any) -> str:
    return confirmation_question(tool, arguments, about or {}, replace(PROMPT, language=language))


@pytest.mark.parametrize(
    ("said", "language", "tool", "about", "arguments"),
    [
        (
            "Shall I remind you tomorrow, Sat 28 Nov at 09:00: “stretch”?",
            "en",
            "set_reminder",
            {},
            {"text": "stretch", "at": "2026-11-28T09:00", "repeats": "once"},
        ),
        (
            "要我明天，11月28日（周六）09:00提醒你“拉伸”吗？",
            "zh",
            "set_reminder",
            {},
            {"text": "拉伸", "at": "2026-11-28T09:00"},
        ),
        (
            "Shall I remind you tomorrow, Sat 28 Nov at 09:00: “stretch”?",
            "en",
            "set_reminder",
            {},
            {"text": "stretch", "at": "tomorrow at 9 am"},
        ),
        (
            "要我每周一 09:00（从11月30日开始）提醒你“拉伸”吗？",
            "zh",
            "set_reminder",
            {},
            {"text": "拉伸", "at": "每周一上午9点"},
        ),
        (
            "Shall I remind everyone here every Monday at 09:00 (starting 30 Nov): “stretch”?",
            "en",
            "set_reminder",
            {},
            {"text": "stretch", "at": "2026-11-30T09:00", "repeats": "weekly", "for_whom": ["us"]},
        ),
        (
            "要我每月最后一天 18:00（从11月30日开始）提醒你“写月报”吗？",
            "zh",
            "set_reminder",
            {},
            {"text": "写月报", "at": "每月31号18:00"},
        ),
        (
            "Shall I remind you every day at 09:00 (starting 28 Nov): “stretch”?",
            "en",
            "set_reminder",
            {},
            {"text": "stretch", "at": "2026-11-27T09:00", "repeats": "daily"},
        ),
        (
            "Shall I remind Bob, 陈晨 Fri 4 Dec at 15:00: “stretch”?",
            "en",
            "set_reminder",
            {},
            {"text": "stretch", "at": "next Friday at 3 pm", "for_whom": ["Bob", "陈晨"]},
        ),
        (
            "Shall I change the reminder “stretch”?\n- new text: walk\n"
            "- new time: today, Fri 27 Nov at 18:00\n- for: Bob",
            "en",
            "change_reminder",
            {"reminder": "stretch"},
            {
                "reminder_id": "tm_1",
                "text": "walk",
                "at": "2026-11-27T10:00:00Z",
                "for_whom": ["Bob"],
            },
        ),
        (
            "要我取消提醒“拉伸”吗？",
            "zh",
            "cancel_reminder",
            {"reminder": "拉伸"},
            {"reminder_id": "tm_1"},
        ),
        ("Shall I cancel the reminder “tm1”?", "en", "cancel_reminder", {}, {"reminder_id": "tm1"}),
        (
            "Shall I save the note “Plan”?\n- text: Buy milk\n- tags: home, food",
            "en",
            "create_note",
            {},
            {"title": "Plan", "body": "Buy milk", "tags": ["home", "food"]},
        ),
        (
            "要我修改笔记“计划”吗？\n- 正文：（空）\n- 移除标签：家",
            "zh",
            "update_note",
            {"note": "计划"},
            {"note_id": "n1", "body": "", "remove_tags": ["家"]},
        ),
        (
            "Shall I delete the note “Plan” for good?",
            "en",
            "delete_note",
            {"note": "Plan"},
            {"note_id": "n1"},
        ),
        (
            "要我把笔记“计划”分享给这里的所有人吗？",
            "zh",
            "share_note",
            {},
            {"note_id": "n1", "title": "计划"},
        ),
        (
            "Shall I stop sharing the note “Plan” with this chat?",
            "en",
            "share_note",
            {"note": "Plan"},
            {"note_id": "n1", "shared": False},
        ),
        (
            "Shall I remember this about you, in all our chats?\n- launch date: 3 March\n"
            "- diet: (forget it for good)",
            "en",
            "update_working_memory",
            {},
            {"scope": "person", "patch": {"launch_date": "3 March", "diet": None}},
        ),
        (
            "要我永久忘记“三月三日”吗？",
            "zh",
            "forget_fact",
            {"fact": "三月三日"},
            {"key": "launch"},
        ),
        (
            "Shall I run `desk__publish` with this?\n- text: lilac\n- to: a, b\n- options:\n"
            "  - loud: true\n  - times: 3",
            "en",
            "desk__publish",
            {},
            {"text": "lilac", "to": ["a", "b"], "options": {"loud": True, "times": 3}},
        ),
        ("要我执行 `desk__publish` 吗？", "zh", "desk__publish", {}, {}),
    ],
)
def test_it_asks_in_the_reader_s_language(
    said: str, language: Language, tool: str, about: dict[str, str], arguments: dict[str, Any]
) -> None:
    found = confirmation_question(tool, arguments, about, replace(PROMPT, language=language))
    assert as_read(found) == said


def test_each_of_our_tools_that_can_wait_has_a_question_of_its_own() -> None:
    for tool in GUARDED:
        said = asked(tool, note_id="n1", reminder_id="tm1", key="k", patch={}, at="x")
        assert tool not in as_read(said)
        assert asked(tool), "whatever a model leaves out"


VALUES = st.recursive(
    st.text(max_size=30) | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=4), st.sampled_from("ez"))
def test_a_tool_of_others_is_shown_with_every_value_and_no_mark(
    arguments: dict[str, Any], first: str
) -> None:
    language: Language = "en" if first == "e" else "zh"
    said = confirmation_question("desk__publish", arguments, {}, replace(PROMPT, language=language))
    assert not [
        c for c in said if not c.isprintable() and c != "\n" and not 0xF000 < ord(c) < 0xF080
    ]
    shown = card_markdown(said)
    assert "<at" not in shown
    assert "](" not in shown
    assert len(said.splitlines()) >= 1 + len(arguments)


def test_nothing_of_an_argument_is_left_out_or_invisible() -> None:
    said = asked("desk__run", text="x" * 3000 + "\u202egnp\u200b")
    assert as_read(said).endswith("x" * 3000 + "\\u202egnp\\u200b")


@pytest.mark.parametrize(
    "hostile",
    ["<at id=all></at>", "[a](http://b.c)", "**b**", "a\n\n# Confirm", "\u202etxt", "\U000e0041x"],
)
def test_an_argument_cannot_write_on_the_card(hostile: str) -> None:
    for tool, name in (("set_reminder", "text"), ("create_note", "body"), ("desk__run", "text")):
        said = asked(tool, at="2026-11-28T09:00", title="t", **{name: hostile})
        shown = card_markdown(said)
        assert "<at" not in shown
        assert "**" not in shown
        assert "](" not in shown
        assert "\n# " not in shown
        assert "\u202e" not in shown
        assert "\U000e0041" not in shown
