"""Naming the bot again gives no less than not naming it: one's own exchange, and each line once."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.conftest import World, prompt_of

_DRESS = re.compile(r"^(?:> )?(?:\[[\d: -]+\] )?(?:(?:Alice|Bob|Memo): )?(?:@\w+ )*")
_WHEN = re.compile(r"^\[[\d: -]+\] ")


@dataclass(frozen=True)
class Words:
    """What is said in one language: `again` names the bot, `on` follows up without naming it."""

    fact: str
    noted: str
    again: str
    on: str
    other: str
    other_noted: str


ENGLISH = Words(
    fact="our launch is on 3 March",
    noted="Noted, the third it is.",
    again="and what did I just tell you?",
    on="and what about the party?",
    other="my salary talk is on Monday",
    other_noted="Good luck with it.",
)
CHINESE = Words(
    fact="我们的发布日是三月三号",
    noted="好的，记住了这个日子。",
    again="我刚才跟你说了什么？",
    on="那庆功宴呢？",
    other="我周一要谈薪水",
    other_noted="祝你顺利。",
)


@pytest.fixture(params=[ENGLISH, CHINESE], ids=["English", "Chinese"])
def words(request: pytest.FixtureRequest, world: World) -> Words:
    """The model knows an answer to each fact, and one to everything else."""
    said: Words = request.param
    answers = [(said.fact, said.noted), (said.other, said.other_noted)]
    rules: list[dict[str, Any]] = [
        {"when": [{"contains": fact}], "reply": {"text": noted}} for fact, noted in answers
    ]
    world.model.control("script", {"rules": [*rules, {"reply": {"text": "So it is."}}]})
    return said


def told(world: World, who: str, text: str, **more: Any) -> str:
    """Names the bot, and waits until the answer is kept everywhere."""
    question, _ = world.ask(who, text, **more)
    world.settled(question)
    world.model.forget()
    return question


def prompt(world: World) -> str:
    """Everything the one request since the last answer said, each line of it once."""
    (request,) = world.model.requests()
    text = "\n".join(said for _, said in prompt_of(request))
    bare = (_DRESS.sub("", line).strip() for line in text.splitlines())
    twice = [line for line, times in Counter(filter(None, bare)).items() if times > 1]
    assert not twice
    return text


def spoken(world: World) -> list[tuple[str, str]]:
    (request,) = world.model.requests()
    said = ((role, text) for role, text in prompt_of(request) if role != "system")
    return [(role, _WHEN.sub("", text)) for role, text in said]


def test_named_twice_the_second_question_sees_the_first_exchange(
    world: World, words: Words
) -> None:
    told(world, "Alice", words.fact)
    world.ask("Alice", words.again)

    prompt(world)
    assert spoken(world) == [
        ("user", f"Alice: {words.fact}"),
        ("assistant", f"@Alice {words.noted}"),
        ("user", f"Alice: {words.again}"),
    ]


def test_a_follow_up_without_the_name_sees_the_exchange_once(world: World, words: Words) -> None:
    told(world, "Alice", words.fact)
    world.answer(world.say("Alice", words.on))

    text = prompt(world)
    assert text.count(words.fact) == text.count(words.noted) == 1


def test_named_after_a_follow_up_both_exchanges_are_there(world: World, words: Words) -> None:
    told(world, "Alice", words.fact)
    follow_up = world.say("Alice", words.on)
    world.answer(follow_up)
    world.settled(follow_up)
    world.model.forget()
    world.ask("Alice", words.again)

    text = prompt(world)
    for line in (words.fact, words.noted, words.on, words.again):
        assert text.count(line) == 1, line


def test_in_a_thread_the_history_is_the_threads_and_no_line_comes_twice(
    world: World, words: Words
) -> None:
    first = told(world, "Alice", words.fact)
    told(world, "Alice", words.other)
    world.answer(world.say("Alice", words.on, root_id=first))

    text = prompt(world)
    assert text.count(words.fact) == text.count(words.noted) == 1
    assert words.other not in text
    assert words.other_noted not in text


def test_what_somebody_else_told_the_bot_in_the_chat_stands_under_their_name(
    world: World, words: Words
) -> None:
    told(world, "Alice", words.fact)
    thread = told(world, "Bob", words.other)
    told(world, "Bob", words.on, root_id=thread)
    world.ask("Alice", words.again)

    text = prompt(world)
    assert text.count(words.fact) == text.count(words.noted) == 1
    assert text.count(words.other) == text.count(words.other_noted) == text.count(words.on) == 1
    for line in (words.other, words.on):
        assert ("user", f"Bob: {line}") in spoken(world)


def test_a_fresh_start_also_ends_what_the_next_mention_is_told(world: World, words: Words) -> None:
    told(world, "Alice", words.fact)
    told(world, "Alice", "/new")
    world.ask("Alice", words.again)

    text = prompt(world)
    assert words.fact not in text
    assert words.noted not in text


def test_that_note_is_the_one_of_the_last_exchange_in_the_chat(world: World) -> None:
    call = {"name": "create_note", "arguments": {"title": "Pasta", "body": "with tomatoes"}}
    rules = [
        {"when": [{"contains": "make a note"}], "reply": {"tool_calls": [call]}},
        {"reply": {"text": "Done."}},
    ]
    world.model.control("script", {"rules": rules})
    first = told(world, "Alice", "make a note on pasta")
    (row,) = world.rows("select id from agent_notes where user_id = %s order by created_at desc"
                        " limit 1", world.people["Alice"])  # fmt: skip
    assert first
    world.ask("Alice", "what is in that note?")

    assert row["id"] in prompt(world)
