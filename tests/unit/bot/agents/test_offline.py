"""The offline model: what it understands, and that it knows only what stands in its prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.llm.model import Request
from bot.agents.llm.requests import plain_messages
from bot.agents.loop import run_agent
from bot.agents.offline import facts
from bot.agents.offline.commands import NoteRequest, command
from bot.agents.offline.evidence import cited_statement, statements, statements_answering
from bot.agents.offline.model import OfflineModel, Situation, next_step
from bot.agents.offline.notes import Call, Returned, say
from bot.agents.offline.prompt_reading import PromptLine, label_and_words, recalled_lines
from bot.agents.prompts.prompt import MEMORY_AWAY, REGISTRY, THREAD_MEMORY
from bot.agents.running_turns import OnProgress, Progress, Spent
from bot.agents.tool_types import Toolbox, ToolOutcome, tool
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool_calls import ToolSession, store_failure_outcome
from bot.feishu.markup import card_markdown, with_marks
from memory.errors import NoteNotFound, StoreUnavailable
from tests.support.rows import every_row

TOOLS = frozenset(
    {"create_note", "update_note", "update_working_memory", "forget_fact", "recall", "set_reminder"}
)
TABLE = f"""{REGISTRY}
| no. | title | ID | tags | last action | recency (1 = used last) |
|---|---|---|---|---|---|
| 1 | Pizza | note_aaaa | italian | created | 2 |
| 2 | Pasta sauce | note_bbbb | italian, dinner | updated | 1 |
| 3 | 周末计划 | note_cccc |  | listed | - |
"""


def _tagged(title: str, added: Sequence[str] = (), removed: Sequence[str] = ()) -> ToolOutcome:
    change = {"title": title, "old_title": title, "body_changed": False}
    return ToolOutcome("…", "note-updated", {**change, "added": added, "removed": removed})


def _step(question: str, **known: object) -> Call | str:
    return next_step(Situation(question, tools=TOOLS, **known))  # type: ignore[arg-type]


@every_row(
    "text",
    [
        "note that our launch is on 3 March",
        "remember that the note is blue",
        "记住我们的发布日是3月3日",
        "what is a note?",
        "add 3 to 4",
        "",
    ],
)
def test_other_sentences_are_no_commands(text: str) -> None:
    assert command(text) is None


@given(st.text(max_size=600))
def test_any_text_gets_an_answer_or_a_call(text: str) -> None:
    step = _step(text)
    assert isinstance(step, Call) or step.strip()


@every_row(
    ("question", "note"),
    [
        ("add the tag x to that note", "note_bbbb"),
        ("add the tag x to it", "note_bbbb"),
        ("add the tag x to the first note", "note_aaaa"),
        ("add the tag x to the second note", "note_bbbb"),
        ("add the tag x to the last note", "note_cccc"),
        ("add the tag x to note 2", "note_bbbb"),
        ("给第三条加上标签x", "note_cccc"),
        ("add the tag x to the note about pasta", "note_bbbb"),
        ("add the tag x to the pizza note", "note_aaaa"),
        ("add the tag x to the pasta note", "note_bbbb"),
        ("给第一条笔记加上标签x", "note_aaaa"),
        ("给那条笔记加上标签x", "note_bbbb"),
        ("给周末计划那条笔记加上标签x", "note_cccc"),
    ],
)
def test_a_note_is_resolved_by_position_title_or_recency(question: str, note: str) -> None:
    assert _step(question, instructions=TABLE) == Call(
        "update_note", {"note_id": note, "add_tags": ["x"]}
    )


def test_without_a_registry_the_tool_context_of_earlier_answers_tells_the_ids() -> None:
    said = (
        'Done\n 1. Tool: create_note (ok)\n Result: Successfully created note "A" (ID: note_aaaa).',
        'Done\n 1. Tool: create_note (ok)\n Result: Successfully created note "B" (ID: note_bbbb).',
        'Done\n 1. Tool: delete_note (ok)\n Result: Successfully deleted note "B" (ID: note_bbbb).',
    )
    first_two = _step("delete that note", bot_said=said[:2])
    after_deletion = _step("delete that note", bot_said=said)

    assert first_two == Call("delete_note", {"note_id": "note_bbbb"})
    assert after_deletion == Call("delete_note", {"note_id": "note_aaaa"})


def test_without_any_known_note_it_asks_instead_of_guessing() -> None:
    step = _step("add the tag x to that note")
    assert isinstance(step, str)
    assert "couldn't find that note" in step


def test_a_note_known_only_by_name_is_searched_and_then_changed() -> None:
    question = "add the tag x to the lasagna note"
    search = _step(question, instructions=TABLE)
    lasagna = {"id": "note_dddd", "title": "Lasagna"}
    found = Returned(
        "search_notes", ToolOutcome("1 note found: …", "notes-found", {"notes": [lasagna]})
    )

    assert search == Call("search_notes", {"query": "lasagna"})
    assert _step(question, instructions=TABLE, results=(found,)) == Call(
        "update_note", {"note_id": "note_dddd", "add_tags": ["x"]}
    )


def test_of_several_notes_the_answer_says_which_one_was_taken() -> None:
    done = Returned("update_note", _tagged("Pasta sauce", added=["x"]))

    step = _step("add the tag x to that note", instructions=TABLE, results=(done,))

    assert isinstance(step, str)
    assert "I updated the note “Pasta sauce”: added the tag “x”." in step
    assert "These match, too: Pizza" in step
    assert "note_" not in step


def test_a_failed_call_is_told_honestly_in_one_sentence() -> None:
    failed = Returned("create_note", store_failure_outcome(StoreUnavailable("no answer")))
    step = _step("create a note about pasta", results=(failed,))
    assert step == "I couldn't do that: I can't reach my memory right now."


def test_a_fact_goes_into_the_working_memory_before_it_is_confirmed() -> None:
    asked = _step("remember that our launch is on 3 March")
    done = Returned("update_working_memory", ToolOutcome("Successfully updated", "facts-kept"))

    assert asked == Call(
        "update_working_memory",
        {"scope": "thread", "patch": {"our_launch_time": "our launch is on 3 March"}},
    )
    confirmed = _step("remember that our launch is on 3 March", results=(done,))
    assert confirmed == "Got it, I'll remember: “our launch is on 3 March”"


def test_a_question_is_answered_from_the_working_memory() -> None:
    memory = f'{THREAD_MEMORY}\n{{"our_launch": "our launch is on 3 March", "city": "Oslo"}}\n\nx'

    told = _step("when is our launch?", instructions=memory)
    assert told == "You told me: “our launch is on 3 March”"
    told = with_marks(str(_step("which city?", instructions=memory)))
    assert told == "You told me: “city: Oslo”"


@every_row(
    ("person", "author", "answer"),
    [
        ("Alice", "", "You told me: “my desk is in room 4”"),
        ("Alice", "Alice", "You told me: “my desk is in room 4”"),
        ("Bob", "Alice", "Bob: “my desk is in room 4”"),
    ],
)
def test_what_is_kept_is_told_as_the_words_of_whose_memory_it_is(
    person: str, author: str, answer: str
) -> None:
    memory = f'{THREAD_MEMORY}\n{{"my_desk": "my desk is in room 4"}}\n\nx'
    question = "where is the desk?"
    assert _step(question, instructions=memory, person=person, author=author) == answer


def test_words_of_people_are_quoted_as_data() -> None:
    said = 'the *room* is called "Blue", see [this](https://evil.example) or https://ok.example/a'
    told = str(_step("what is the room called?", lines=(PromptLine(said, "Alice"),)))
    assert card_markdown(told) == (
        "Alice: “the &#42;room&#42; is called ‘Blue’, see &#91;this&#93;&#40;"
        "https://evil.example&#41; or https://ok.example/a”"
    )


@every_row(
    ("question", "answer"),
    [("what was the budget?", "Alice: “{}”"), ("预算是多少？", "Alice：“{}”")],
)
def test_whoever_asks_may_not_be_who_said_it(question: str, answer: str) -> None:
    fact = "预算是12万" if "预算" in question else "the budget is 12 k€"
    told = _step(question, lines=(PromptLine(fact, "Alice"),))
    assert told == answer.format(fact)


def test_what_is_unknown_is_looked_up_and_else_admitted() -> None:
    question = "when is our launch?"
    nothing = Returned("recall", ToolOutcome("Nothing matches. Do not guess."))

    assert _step(question) == Call("recall", {"query": question, "scope": "everywhere"})
    assert "Nobody here has told me" in str(_step(question, results=(nothing,)))
    assert "Nobody here has told me" in str(next_step(Situation(question)))


def test_where_meaning_counts_the_nearest_is_told_if_nothing_shares_a_word() -> None:
    question = "where is our vehicle?"
    van = "[2026-03-02 10:00] Alice: @Memo remember that the van stands behind the warehouse"
    asked_before = "[2026-03-02 10:05] Bob: @Memo where is the car?"
    many = Returned("recall", ToolOutcome(f"{van}\n[2026-03-03 09:00] Bob: lunch is at noon"))
    best = Returned("recall", ToolOutcome(f"{van}\n{asked_before}"))
    situation = Situation(
        question,
        instructions="Now:\n2026-03-04 10:00 Wednesday (Asia/Shanghai)",
        tools=frozenset({"recall"}),
        own_name="Memo",
        by_meaning=True,
    )

    again = next_step(replace(situation, results=(many,)))
    assert again == Call("recall", {"query": question, "scope": "everywhere", "k": 2})
    told = str(next_step(replace(situation, results=(many, best))))
    assert told.splitlines()[0] == "Nobody has told me exactly that. The closest I found:"
    assert told.splitlines()[2:] == [
        "- Alice, 2 Mar at 10:00: “the van stands behind the warehouse”"
    ]
    by_words = replace(situation, by_meaning=False, results=(many,))
    assert "Nobody here has told me that" in str(next_step(by_words))


def test_chinese_is_answered_in_chinese() -> None:
    done = Returned("update_note", _tagged("意面", removed=["晚餐"]))
    step = _step("从那条笔记删除标签晚餐", results=(done,))
    assert step == "已更新笔记“意面”：去掉了标签“晚餐”。"


@pytest.mark.anyio
async def test_it_streams_the_same_answer_and_calls_that_it_gives_at_once() -> None:
    async def update_working_memory(
        deps: ToolDeps, scope: str, patch: dict[str, str]
    ) -> ToolOutcome:
        """Keep facts.

        Args:
            scope: Whose.
            patch: Which.
        """
        return ToolOutcome(f"Successfully updated {scope} {patch}", "facts-kept")

    shown: list[str] = []

    async def on_progress(progress: Progress) -> None:
        shown.append(progress.text)

    async def asked(on_progress: OnProgress | None) -> tuple[str, list[dict[str, Any]]]:
        deps = ToolDeps(*cast(Any, (None,) * 4))
        hands = ToolSession(Toolbox([tool(update_working_memory)]), deps)
        messages = plain_messages("", "remember that tea is at four")
        said = await run_agent(
            OfflineModel(), messages, usage=Spent(), hands=hands, on_progress=on_progress
        )
        return said.text, deps.calls

    at_once, calls = await asked(None)
    streamed, calls_again = await asked(on_progress)

    assert streamed == at_once == shown[-1]
    assert len(shown) > 3
    for [call] in (calls, calls_again):
        assert call["result"] == "Successfully updated thread {'tea_at': 'tea is at four'}"


@pytest.mark.anyio
async def test_the_model_is_a_real_one_for_the_agent_loop() -> None:
    response = await OfflineModel().respond(Request(plain_messages("", "hello")))

    assert response.text == say("greeting", "en")
    assert response.calls == ()


def test_commands_are_plain_values() -> None:
    assert command("list my notes") == NoteRequest("list", language="en")


@every_row("question", ["remember that it is red", "what colour is it?", "hi", "记住"])
def test_without_its_memory_it_claims_neither_to_remember_nor_never_to_have_heard(
    question: str,
) -> None:
    answer = next_step(Situation(question, instructions=f"Memory:\n{MEMORY_AWAY}"))

    assert isinstance(answer, str)
    assert "can't reach my memory" in answer or "连不上" in answer


LISTED = f"""{REGISTRY}
The list of notes that a card showed last, in its order: 1. note_cccc, 3. note_aaaa
{TABLE.removeprefix(REGISTRY)}"""


@every_row(
    ("which", "note"),
    [("第一条", "note_cccc"), ("the third note", "note_aaaa"), ("that note", "note_bbbb")],
)
def test_a_position_counts_in_the_list_that_was_shown_last(which: str, note: str) -> None:
    question = f"把{which}删掉" if which.startswith("第") else f"delete {which}"
    assert _step(question, instructions=LISTED) == Call("delete_note", {"note_id": note})


@every_row(
    ("text", "kind", "ref", "tags", "title"),
    [
        ("create a note about pasta with tags italian, dinner", "make", "", "italian dinner",
         "Pasta"),
        ("Please make a note titled 'Launch plan' tagged work", "make", "", "work", "Launch plan"),
        ("创建一条关于意面的笔记，标签：意大利、晚餐", "make", "", "意大利 晚餐", "意面"),
        ("请帮我写一条笔记：周末计划，标签 出行", "make", "", "出行", "周末计划"),
        ("建一条笔记，标题是意面，标签是意大利菜、晚餐", "make", "", "意大利菜 晚餐", "意面"),
        ("记一条笔记：买牛奶，还有鸡蛋", "make", "", "", "买牛奶，还有鸡蛋"),
        ("新建笔记 意面，标签 和风和晚餐", "make", "", "和风 晚餐", "意面"),
        ("add a note: buy milk", "make", "", "", "Buy milk"),
        ("add the tag 'dining' to that note", "tag", "that note", "dining", ""),
        ("tag the pasta note with quick and easy", "tag", "the pasta note", "quick easy", ""),
        ("update that note to add tag 'fast-food'", "tag", "that note", "fast-food", ""),
        ("给那条笔记加上标签“晚餐”", "tag", "那条笔记", "晚餐", ""),
        ("更新那条笔记，添加标签 快餐", "tag", "那条笔记", "快餐", ""),
        ("给第二条加个标签：快手", "tag", "第二条", "快手", ""),
        ("加上标签快手", "tag", "", "快手", ""),
        ("add the tag quick", "tag", "", "quick", ""),
        ("remove the italian tag from the first note", "untag", "the first note", "italian", ""),
        ("把第一条笔记的意大利标签去掉", "untag", "第一条笔记", "意大利", ""),
        ("从第一条笔记删除标签意大利", "untag", "第一条笔记", "意大利", ""),
        ("把那条笔记的晚餐标签去掉", "untag", "那条笔记", "晚餐", ""),
        ("删掉那条笔记的晚餐标签", "untag", "那条笔记", "晚餐", ""),
        ("移除标签晚餐", "untag", "", "晚餐", ""),
        ("把晚餐标签去掉", "untag", "", "晚餐", ""),
        ("remove the dinner tag", "untag", "", "dinner", ""),
        ("list my notes", "list", "", "", ""),
        ("我有哪些笔记？", "list", "", "", ""),
        ("列出我的笔记", "list", "", "", ""),
        ("find notes about dinner", "find", "", "", "Dinner"),
        ("找一下关于晚餐的笔记", "find", "", "", "晚餐"),
        ("搜索笔记 意面", "find", "", "", "意面"),
        ("search notes for pasta", "find", "", "", "Pasta"),
        ("第一条笔记现在有什么标签？", "tags", "第一条笔记", "", ""),
        ("what tags does the first note have now?", "tags", "the first note", "", ""),
        ("把标题改成番茄意面", "name", "", "", "番茄意面"),
        ("把第二条改名为披萨", "name", "第二条", "", "披萨"),
        ("change the title to Pizza", "name", "", "", "Pizza"),
        ("delete that note", "drop", "that note", "", ""),
        ("把那条笔记删掉", "drop", "那条笔记", "", ""),
        ("share that note with this chat", "share", "that note", "", ""),
        ("show me the pasta note", "show", "the pasta note", "", ""),
        ("删除那条笔记", "drop", "那条笔记", "", ""),
        ("删除第二条", "drop", "第二条", "", ""),
        ("第二条是什么", "show", "第二条", "", ""),
        ("你能做什么？", "help", "", "", ""),
        ("what can you do?", "help", "", "", ""),
    ],
)  # fmt: skip
def test_what_people_type_is_understood(
    text: str, kind: str, ref: str, tags: str, title: str
) -> None:
    found = command(text)
    assert found is not None
    assert (found.kind, found.ref, found.tags) == (kind, ref, tuple(tags.split()))
    assert found.title == title


@every_row("question", ["你能做什么？", "what can you do?"])
def test_it_says_what_it_can_do_and_that_it_is_no_language_model(question: str) -> None:
    answer = str(_step(question))
    assert "OPENAI_API_KEY" in answer
    assert "没有接入大模型" in answer or "without a language model" in answer


@every_row("example", re.findall("“(.+?)”", say("guide", "zh") + say("guide", "en")))
def test_every_example_of_its_help_is_understood(example: str) -> None:
    said = ("my name is Alice", "我叫小明", "our launch is on 3 March", "发布日是3月3日")
    step = _step(example, instructions=TABLE, lines=tuple(map(PromptLine, said)))
    assert isinstance(step, Call) or re.search("Alice|小明|3 March|3月3日", step)


@every_row("question", ["add the tag x to both notes", "给所有笔记加上标签 x", "share my notes"])
def test_of_several_notes_at_once_none_is_touched(question: str) -> None:
    step = _step(question, instructions=TABLE)
    assert isinstance(step, str)
    assert "so nothing was changed" in step or "没有改动" in step


ALIKE = f"""{REGISTRY}
| 1 | Pasta pesto | note_aaaa |  | created | 2 |
| 2 | Pasta sauce | note_bbbb |  | created | 1 |
"""


@every_row("question", ["delete the pasta note", "add the tag x to the pasta note"])
def test_of_two_notes_that_fit_alike_it_asks_which(question: str) -> None:
    step = _step(question, instructions=ALIKE)
    assert isinstance(step, str)
    assert "Which note" in step
    assert "Pasta pesto" in step
    assert "Pasta sauce" in step


KEPT = f'{THREAD_MEMORY}\n{{"our_launch": "our launch is on 3 March", "city": "Oslo"}}\n\nx'
KEPT_ZH = f'{THREAD_MEMORY}\n{{"发布日": "发布日是3月3日", "城市": "杭州"}}\n\nx'


@every_row(
    ("question", "instructions", "call"),
    [
        ("forget that our launch is on 3 March", KEPT, ("forget_fact", {"key": "our_launch"})),
        ("Please forget our launch.", KEPT, ("forget_fact", {"key": "our_launch"})),
        ("忘掉发布日", KEPT_ZH, ("forget_fact", {"key": "发布日"})),
        ("请忘记我们的发布日。", KEPT_ZH, ("forget_fact", {"key": "发布日"})),
        (
            "no, it is now Bergen",
            KEPT,
            ("update_working_memory", {"scope": "thread", "patch": {"city": "Bergen"}}),
        ),
        (
            "不对，现在是宁波",
            KEPT_ZH,
            ("update_working_memory", {"scope": "thread", "patch": {"城市": "宁波"}}),
        ),
    ],
)
def test_a_fact_is_forgotten_and_corrected(
    question: str, instructions: str, call: tuple[str, dict[str, object]]
) -> None:
    assert _step(question, instructions=instructions) == Call(*call)


@every_row(
    ("statement", "correction", "fact"),
    [
        (
            "the handover is on 3 March at 9:50",
            "no, it is now 10 March at 11:15",
            "the handover is on 10 March at 11:15",
        ),
        ("晨会时间：9:30", "不对，是10：15", "晨会时间：10：15"),
        ("the ratio is 3:1", "no, it is 4:1", "the ratio is 4:1"),
        ("打样在3月4日 14:00", "不对，是3月12日 9:30", "打样在3月12日 9:30"),
        ("打样在 3 月 4 日", "不对，是 3 月 12 日", "打样在 3 月 12 日"),
        ("the dinner is at the pier", "no, it is back in the hall", "the dinner is in the hall"),
        ("our standup is at 9:45", "no, it's back to 9:15", "our standup is at 9:15"),
        ("my trouble is a headache", "no, it is back pain", "my trouble is back pain"),
        ("发布会在3月10号", "不对，又改回3号了", "发布会在3号"),
    ],
)
def test_a_time_or_a_ratio_is_a_value_and_no_statement(
    statement: str, correction: str, fact: str
) -> None:
    value = facts.corrected_value(correction)
    assert not facts.is_whole(value)
    assert facts.statement_with_value(statement, value) == fact


@every_row("question", ["forget about the weather", "忘掉天气"])
def test_what_is_not_kept_cannot_be_forgotten(question: str) -> None:
    assert isinstance(_step(question, instructions=KEPT), str)


WAITS = ToolOutcome("Not done yet: it waits for a button.", "waits-for-press")


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("create a note about pasta", "create_note"),
        ("delete that note", "delete_note"),
        ("把那条笔记的晚餐标签去掉", "update_note"),
        ("share that note", "share_note"),
        ("remember that tea is at four", "update_working_memory"),
        ("我叫小明，记住", "update_working_memory"),
        ("no, it is now Bergen", "update_working_memory"),
    ],
)
@pytest.mark.parametrize(
    "outcome",
    [
        WAITS,
        store_failure_outcome(NoteNotFound("no note of this person has this id")),
        ToolOutcome("Nonsense."),
    ],
    ids=["waits", "refused", "without a kind"],
)
def test_nothing_is_said_to_be_done_that_the_result_does_not_say(
    question: str, tool: str, outcome: ToolOutcome
) -> None:
    answer = str(
        _step(question, instructions=f"{TABLE}\n{KEPT}", results=(Returned(tool, outcome),))
    )
    for claim in ("I created", "I deleted", "I updated", "Got it", "已", "记住了", "can read"):
        assert claim not in answer


@every_row(
    ("told", "question", "answer"),
    [
        ("my name is Alice, remember that", "what is my name?", "Your name is Alice."),
        ("remember my name is Alice", "what's my name", "Your name is Alice."),
        ("我叫小明，记住", "我叫什么？", "你叫小明。"),
        ("请记住我叫小明", "你记得我的名字吗？", "你叫小明。"),
    ],
)
def test_a_name_is_kept_and_told(told: str, question: str, answer: str) -> None:
    call = _step(told)
    assert isinstance(call, Call)
    assert call.tool == "update_working_memory"
    patch = call.arguments["patch"]
    assert list(patch) == ["name"]
    memory = f"{THREAD_MEMORY}\n{json.dumps(patch)}\n"
    assert _step(question, instructions=memory) == answer
    assert _step(question, lines=(PromptLine(told),)) == answer


def test_somebody_elses_name_is_not_the_askers() -> None:
    names = (("Bob", "Bob"), ("Alice", "Alice"), ("Bob", "Robert"))
    said = tuple(PromptLine(f"my name is {name}", who) for who, name in names)
    assert _step("what is my name?", lines=said, author="Alice") == "Your name is Alice."


def test_a_fact_about_oneself_does_not_replace_another() -> None:
    facts = ("记住我有一只猫", "记住我在上海", "remember I have a cat", "remember I have tea at 4")
    calls = [_step(fact) for fact in facts]
    keys = [key for call in calls if isinstance(call, Call) for key in call.arguments["patch"]]
    assert len(set(keys)) == len(facts)


def test_without_a_way_to_keep_it_nothing_is_said_to_be_kept() -> None:
    answer = str(next_step(Situation("remember that tea is at four")))
    assert "can't remember that here" in answer


def told_before(question: str, recalled: str) -> list[str]:
    """What is told of the lines that recall gives."""
    lines = recalled_lines(recalled, "Memo")
    now = datetime(2026, 11, 22, 18, 0)  # noqa: DTZ001
    return [
        with_marks(cited_statement(one, "Bob", now, "en"))
        for one in statements_answering(question, statements(lines))
    ]


def test_of_what_recall_gives_it_tells_what_people_said_and_not_its_own_words() -> None:
    recalled = "\n".join(
        [
            "[2026-11-22 13:08] Alice: @Memo what can you do?",
            "[2026-11-22 13:08] [you]: @Alice I am the offline model. when is our launch?",
            "[2026-11-22 13:09 · current] Alice: @Memo remember that our launch is on 3 March",
            "[2026-11-22 13:09 · current] [you]: @Alice Got it: “our launch is on 3 March”",
            "[2026-11-22 13:10] Bob: the cake is in the fridge",
        ]
    )
    assert told_before("when is our launch?", recalled) == [
        "Alice, 22 Nov at 13:09: “our launch is on 3 March”"
    ]
    assert told_before("when?", "Nothing matches. Do not guess.") == []


@every_row(
    ("question", "said", "fits"),
    [
        ("which day is it?", "remind me yesterday to call mum", False),
        ("今天星期几？", "记一条笔记：发布推迟到周五", False),
        ("我生日哪天？", "我的生日是五月四日", True),
        ("车位在哪儿", "我的车位是 B12", True),
        ("who moves the boxes?", "Bob is moving the boxes", True),
        ("when do we deploy?", "the deployment is on Friday", True),
    ],
)
def test_only_what_shares_a_word_with_the_question_is_told(
    question: str, said: str, fits: bool
) -> None:
    assert bool(told_before(question, f"[2026-11-22 13:08] Alice: {said}")) is fits


def test_a_name_in_front_is_whom_it_is_about_unless_it_is_the_bots() -> None:
    assert label_and_words("Alice: @Memo @Bob owes the vendor a call", "Memo") == (
        "Alice", "@Bob owes the vendor a call",
    )  # fmt: skip
    assert label_and_words("@Memo hi", "Memo") == ("", "hi")
    assert told_before(
        "who owes the vendor a call?",
        "[2026-11-22 13:08] Alice: @Memo remember that @Bob owes the vendor a call",
    ) == ["Alice, 22 Nov at 13:08: “@Bob owes the vendor a call”"]


LINK = f"https://acme.feishu.cn/docx/{'a' * 27}"
READ = f"Title: Plan\nLink: {LINK}\n\n# Launch\nWe launch on 3 March.\nTea is at four."


@every_row(
    ("question", "outcome", "answer"),
    [
        (f"when do we launch? {LINK}", ToolOutcome(READ), "We launch on 3 March."),
        (f"看看 {LINK}", ToolOutcome(READ), "Tea is at four."),
        (f"看看 {LINK}", ToolOutcome("no: /connect", ok=False), "/connect"),
    ],
)
def test_it_reads_the_document_that_a_link_leads_to(
    question: str, outcome: ToolOutcome, answer: str
) -> None:
    asked = Situation(question, tools=frozenset({"read_document"}))
    assert next_step(asked) == Call("read_document", {"url": LINK})
    told = next_step(replace(asked, results=(Returned("read_document", outcome),)))
    assert isinstance(told, str)
    assert answer in told
    assert next_step(replace(asked, tools=frozenset())) != next_step(asked)
