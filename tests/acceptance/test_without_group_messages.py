"""An app without im:message.group_msg: mentions are answered, and what needs more says so."""

from __future__ import annotations

import json

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown

SCOPE = "im:message.group_msg"
GET = "/open-apis/im/v1/messages/"


@pytest.fixture(scope="module")
def platform_options() -> tuple[str, ...]:
    return ("--mentions-only",)


def p2p(world: World, who: str) -> str:
    """The chat of that person with the bot."""
    chats = world.platform.state()["chats"]
    mine = (c for c in chats if c["mode"] == "p2p" and world.people[who] in c["members"])
    return str(next(mine)["chat_id"])


def prompt(world: World) -> str:
    return json.dumps(world.model.requests()[-1]["body"], ensure_ascii=False)


def test_first_words_name_what_is_missing_and_what_it_would_bring(world: World) -> None:
    group = world.in_a_new_group(told=True)

    def cards() -> list[str]:
        found = world.platform.messages(group.group)
        return [markdown(message) for message in found if is_from_bot(message)]

    shown = eventually(cards, what="first words")[0]
    assert shown.count(SCOPE) == 2, "once in each language"
    assert "I also read quoted messages" in shown
    assert "right after I've answered" not in shown


@pytest.mark.parametrize("command", ["/help", "/帮助", "/import"])
def test_help_and_what_needs_it_say_so(world: World, command: str) -> None:
    _, shown = world.ask("Alice", command)
    assert shown.count(SCOPE) == 1
    _, private = world.ask("Alice", command, chat=p2p(world, "Alice"))
    assert SCOPE not in private


@pytest.mark.parametrize("command", ["/settings", "/mode", "/proactive"])
def test_the_settings_that_need_it_say_so(world: World, command: str) -> None:
    assert markdown(world.ask_alone("Alice", command)).count(SCOPE) == 1
    _, private = world.ask("Alice", command, chat=p2p(world, "Alice"))
    assert SCOPE not in private


def test_a_digest_holds_what_was_said_to_the_bot_and_says_what_it_lacks(world: World) -> None:
    group = world.in_a_new_group()
    group.settled(group.ask("Bob", "remember that the medlar budget is 400 euros")[0])
    group.say("Alice", "The quince launch moves to 12 March.")
    _, told = group.ask("陈晨", "/digest")
    assert "medlar budget" in told
    assert "quince" not in told
    assert SCOPE in told


def test_a_refused_history_does_not_stop_quotes_where_feishu_allows_them(world: World) -> None:
    world.platform.post("/switches", lenient_get=True)
    try:
        said = world.platform.say(world.people["Bob"], world.group, "the quince budget is 400")
        world.ask("Alice", "/digest")
        world.model.forget()
        world.ask("Alice", "what does this mean?", reply_to=said, quote=True)
        assert "quince budget" in prompt(world)
    finally:
        world.platform.post("/switches", lenient_get=False)


def test_a_quote_that_cannot_be_read_says_why_and_p2p_is_not_touched(world: World) -> None:
    group = world.in_a_new_group()
    said = group.platform.say(group.people["Bob"], group.group, "the quince budget is 400")
    group.model.forget()
    group.ask("Alice", "what does this mean?", reply_to=said, quote=True)
    assert SCOPE in prompt(group)
    assert "quince budget" not in prompt(group)

    calls = group.platform.calls(f"{GET}{said}")
    group.ask("Alice", "and again?", reply_to=said, quote=True)
    assert group.platform.calls(f"{GET}{said}") == calls


def test_a_quote_works_again_soon_after_the_scope_is_granted(world: World) -> None:
    said = world.platform.say(world.people["Bob"], world.group, "the medlar budget is 500")
    world.ask("Alice", "what does this mean?", reply_to=said, quote=True)

    def is_read() -> bool:
        world.model.forget()
        world.ask("Alice", "and now?", reply_to=said, quote=True)
        return "medlar budget" in prompt(world)

    assert not is_read()
    world.platform.post("/switches", **{SCOPE: True})
    try:
        eventually(is_read, what="the quoted words")
    finally:
        world.platform.post("/switches", **{SCOPE: False})
