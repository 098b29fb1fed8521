"""Of the tools, those that a question can need are sent, and few others."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.choice import CUES, SPECIALISTS, choose_tools, groups_for
from bot.agents.llm.requests import manager_messages
from bot.agents.loop import Delegation
from bot.agents.manager import Manager, Stores, own_tools
from bot.agents.model_text.cleaner import Cleaner
from bot.agents.prompts.prompt import Prompt, without_knowledge
from bot.agents.prompts.tool_context import enrich
from bot.agents.specialists import FOLDER, TOOL_NAMES, load_specialists
from bot.agents.tool_types import TOOL_GROUPS, Toolbox
from bot.features.registry import TOOLS
from memory.context import PromptMessage, ToolExchange, estimate_tokens
from memory.models import WorkingMemory
from memory.scope import memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support.models import Scripted
from tests.support.rows import every_row

pytestmark = pytest.mark.anyio
PROMPT = Prompt("Memo", "hi", (), "Alice", WorkingMemory(), datetime(2026, 11, 20, tzinfo=UTC))
MOST_TOKENS = 1600
MOST_VAGUE = 2000  # “delete the first one”: a note or a reminder; “what is coming up?”

REQUESTS = [
    ("remember that our launch is on 3 March", "update_working_memory"),
    ("please keep in mind: Bob is our contact at Acme", "update_working_memory"),
    ("no, it is now on 4 March", "update_working_memory"),
    ("when is our launch?", "recall"),
    ("what did Mei tell you about the budget last week?", "recall"),
    ("forget our launch", "forget_fact"),
    ("what do you know about me?", "read_working_memory"),
    ("create a note: release checklist", "create_note"),
    ("jot down that the printer needs toner", "create_note"),
    ("add the tag urgent to that one", "update_note"),
    ("put “milk” on the shopping list", "update_note"),
    ("list everything I have saved", "list_notes"),
    ("search for checklist", "search_notes"),
    ("delete the first one", "delete_note"),
    ("let everyone here read the pasta recipe", "share_note"),
    ("remind us tomorrow at 3 pm to meet", "set_reminder"),
    ("every day at 18:00 tell me to log off", "set_reminder"),
    ("can you ping Bob on Friday about the invoice?", "set_reminder"),
    ("what is coming up this week?", "list_reminders"),
    ("push the stand-up back to 10", "change_reminder"),
    ("I no longer need the one to meet, cancel it", "cancel_reminder"),
    ("记住我们的发布日是 3 月 3 日", "update_working_memory"),
    ("发布日是哪天？", "recall"),
    ("忘掉发布日", "forget_fact"),
    ("你都知道我些什么？", "read_working_memory"),
    ("建一条笔记：发布清单", "create_note"),
    ("帮我写下来：打印机缺墨", "create_note"),
    ("给那条加上标签紧急", "update_note"),
    ("列出我存的东西", "list_notes"),
    ("搜索 清单", "search_notes"),
    ("第一条的内容是什么", "get_note"),
    ("删除第一条笔记", "delete_note"),
    ("让群里的人都能看到那条", "share_note"),
    ("明天下午 3 点提醒我们开会", "set_reminder"),
    ("半小时后叫我一声", "set_reminder"),
    ("每周五五点喊大家交周报", "set_reminder"),
    ("接下来有哪些安排？", "list_reminders"),
    ("把开会那个改到四点", "change_reminder"),
    ("取消开会的提醒", "cancel_reminder"),
    ("把这些整理成表格发给我", "send_file"),
    ("can I have that as a spreadsheet?", "send_file"),
    ("make a QR code for our site", "send_file"),
    ("what time is it in Berlin?", "current_time"),
    ("东京现在几点？", "current_time"),
    ("translate this into Chinese", "ask_specialist"),
    ("summarise today's discussion", "ask_specialist"),
    ("review our OKRs for this quarter", "ask_specialist"),
    ("把上面这段润色一下", "ask_specialist"),
    ("总结一下今天的会议", "ask_specialist"),
    ("帮我看看这个季度的目标定得怎么样", "ask_specialist"),
]


SHIPPED = load_specialists(FOLDER, TOOL_NAMES)
CHOSEN = {name for name, group in TOOL_GROUPS.items() if group}
NAMES = [one.name for one in SHIPPED]
ASKING = Delegation(SHIPPED, model=Scripted(), model_named=None, tools=(), cleaner=Cleaner())
BOX = Toolbox([*own_tools(with_recall=True), *TOOLS, ASKING.tool()])


def sent(question: str, **known: Any) -> Toolbox:
    return choose_tools(BOX, replace(PROMPT, question=question, **known), NAMES)


def cost(question: str) -> int:
    """Tokens of a first mention, by our estimate."""
    messages = manager_messages(replace(PROMPT, question=question), with_tools=True)
    texts = [sent(question).json.decode(), *(str(one["content"]) for one in messages)]
    return sum(map(estimate_tokens, texts))


@every_row(("question", "needed"), REQUESTS)
def test_the_tool_that_a_request_needs_is_among_those_sent(question: str, needed: str) -> None:
    assert needed in sent(question)
    assert needed in sent(f"Alice: {question}"), "in a group, with a name in front"


@every_row(("question", "needed"), REQUESTS)
def test_a_first_mention_stays_cheap(question: str, needed: str) -> None:
    groups = groups_for(replace(PROMPT, question=question))
    is_vague = len(groups & {"notes", "reminders", "calendar"}) > 1
    assert cost(f"Alice: {question}") <= (MOST_VAGUE if is_vague else MOST_TOKENS)


def test_a_question_about_nothing_of_that_costs_a_third_of_all_tools() -> None:
    assert CHOSEN.isdisjoint(sent("why is the sky blue?"))
    assert cost("why is the sky blue?") < 1000


@every_row("text", [one for one, _ in REQUESTS if one.isascii()] + ["at 2026-11-25T10:30"])
def test_a_text_in_ascii_calls_for_the_same_without_the_chinese_cues(text: str) -> None:
    for cues in (*CUES.values(), *SPECIALISTS.values()):
        for cue in (cues.names, cues.hints):
            assert cue.is_in(text.lower()) == bool(cue.anywhere.search(text.lower()))


def test_every_tool_in_a_group_exists() -> None:
    assert set(BOX) >= CHOSEN
    assert set(NAMES) == SPECIALISTS.keys(), "each specialist of ours has its cues"


FOLLOW_UPS = ["and the second one?", "yes, do that", "它呢？", "好的"]


@every_row("question", FOLLOW_UPS)
@every_row("before", ["list what I have noted", "remind me at 3 to call Bob"])
def test_a_follow_up_has_the_tools_of_what_went_before(question: str, before: str) -> None:
    history = (PromptMessage("user", f"Alice: {before}"), PromptMessage("assistant", "Done."))
    assert set(sent(before)) <= set(sent(question, history=history))


@every_row("name", sorted(CHOSEN))
def test_a_tool_that_was_called_is_sent_again(name: str) -> None:
    paired = PromptMessage("assistant", "Done.", exchanges=(ToolExchange("abc", name, "{}", "ok"),))
    told = PromptMessage("assistant", enrich("Done.", [{"name": name, "result": "ok", "ok": True}]))
    assert name in sent("hm", history=(paired,))
    assert name in sent("hm", history=(told,))


def test_what_the_bot_offered_can_be_accepted() -> None:
    offer = PromptMessage("assistant", "Shall I set a reminder for that?")
    assert "set_reminder" in sent("yes", history=(offer,))


def test_people_can_point_at_what_others_said() -> None:
    said = "Bob: somebody should be reminded of that tomorrow"
    assert "set_reminder" in sent("do that please", transcript=said)
    assert "set_reminder" not in sent("why is the sky blue?", transcript=said)


def test_a_chat_with_notes_can_be_asked_about_them() -> None:
    assert "get_note" in sent("the pasta one?", registry="| 1 | Pasta | note_a | | created | 1 |")


def test_a_specialist_of_a_team_is_always_offered() -> None:
    assert "specialists" in groups_for(PROMPT, [*NAMES, "lawyer"])
    assert "specialists" not in groups_for(PROMPT, NAMES)


texts = st.one_of(st.sampled_from([question for question, _ in REQUESTS]), st.text(max_size=30))
messages = st.tuples(st.sampled_from(["user", "assistant"]), texts).map(
    lambda one: PromptMessage(*one)
)


@given(texts, st.lists(messages, max_size=4), st.lists(messages, max_size=3))
def test_a_longer_conversation_never_loses_a_tool(
    question: str, history: list[PromptMessage], older: list[PromptMessage]
) -> None:
    fewer = sent(question, history=tuple(history))
    more = sent(question, history=(*older, *history))
    assert set(fewer) <= set(more)


@given(texts, texts)
def test_tools_keep_their_order_and_the_constant_ones_come_first(one: str, other: str) -> None:
    constant = list(sent("hm"))
    for box in (sent(one), sent(other)):
        assert list(box)[: len(constant)] == constant
        assert list(box)[len(constant) :] == [name for name in BOX if name in {*box} - {*constant}]
    assert sent(one) is sent(one), "its JSON is made once"


async def test_a_tool_that_was_not_sent_is_still_carried_out() -> None:
    script = Scripted([("current_time", {})], "Noon.")
    stores = Stores(MemoryStore(NoRpc()), NoteStore(NoRpc()))
    context = memory_context(chat_id="oc", root="om", subject="ou_a", actor="ou_a")
    prompt = replace(PROMPT, question="hm", context=context)
    answer = await Manager(script, stores=stores).answer(prompt, timeout_s=10)

    assert "current_time" not in script.requests[0].tools
    assert answer.tool_calls[0]["ok"]


def test_two_turns_of_different_people_share_all_but_what_is_known_for_each() -> None:
    history = (PromptMessage("user", "Alice: when?"), PromptMessage("assistant", "On 3 March."))
    first = manager_messages(replace(PROMPT, question="Alice: when?"), with_tools=True)
    later = replace(PROMPT, question="Bob: why?", subject="Bob", history=history, summary="> x")
    second = manager_messages(later, with_tools=True)

    assert first[0] == second[0]
    assert [without_knowledge(one["content"])[1] for one in (first[-1], second[-1])] == [
        "Alice: when?",
        "Bob: why?",
    ]


class NoRpc:
    async def call(self, function: str, params: Any, context: Any) -> Any:
        raise AssertionError(function)


@every_row("part", ["long ", "我们明天提醒大家", "remind me to ", "note: x ", " ", "a"])
def test_a_message_as_long_as_feishu_takes_does_not_keep_the_worker_busy(part: str) -> None:
    question, before = part * (18_000 // len(part)), time.process_time()

    groups_for(replace(PROMPT, question=question), ())

    assert time.process_time() - before < 1
