"""Without threads and without a transcript: what is quoted, and what was just said, stand once."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World
from tests.acceptance.test_named_again import Words, prompt, told
from tests.acceptance.test_named_again import words as words
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.IN_CHAT | {"GROUP_TRANSCRIPT": "off"}  # nothing else helps the model


def test_a_quoted_answer_stands_once_beside_the_question_it_answers(
    world: World, words: Words
) -> None:
    first = told(world, "Alice", words.fact)
    (card,) = world.stored(first)
    world.ask("Alice", words.again, reply_to=card["message_id"], quote=True)

    text = prompt(world)
    assert text.count(words.fact) == text.count(words.noted) == 1
    assert f"\n> @Alice {words.noted}\n\nAlice: {words.again}" in text


def test_ones_own_quoted_message_stands_once(world: World, words: Words) -> None:
    first = told(world, "Alice", words.fact)
    world.ask("Alice", words.again, reply_to=first, quote=True)

    text = prompt(world)
    assert text.count(words.fact) == text.count(words.noted) == 1
    assert f"\n> {words.fact}\n\nAlice: {words.again}" in text


def test_after_a_quotation_the_chat_goes_on_with_the_whole_exchange(
    world: World, words: Words
) -> None:
    first = told(world, "Alice", words.fact)
    (card,) = world.stored(first)
    told(world, "Alice", words.on, reply_to=card["message_id"], quote=True)
    world.ask("Alice", words.again)

    text = prompt(world)
    for line in (words.fact, words.noted, words.on):
        assert text.count(line) == 1, line


def test_nobody_elses_exchange_is_told_without_a_transcript(world: World, words: Words) -> None:
    told(world, "Bob", words.other)
    told(world, "Alice", words.fact)
    world.say("Bob", words.on)
    world.ask("Alice", words.again)

    text = prompt(world)
    assert text.count(words.fact) == 1
    for line in (words.other, words.other_noted, words.on):
        assert line not in text, line
    assert world.rows("select 1 from chat_transcript") == [], "none is kept"
