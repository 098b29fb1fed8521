"""The bot's first words: one card in a group that it is added to, and in a chat first opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown

ADDED = "im.chat.member.bot.added_v1"
OPENED = "im.chat.access_event.bot_p2p_chat_entered_v1"
UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"
ACCEPTED = "select 1 from feishu_bot.inbox"
SEND = "/open-apis/im/v1/messages?receive_id_type"


def cards(world: World, chat: str = "") -> list[str]:
    """The texts of the bot's cards in the chat."""
    found = world.platform.messages(chat or world.group)
    return [markdown(message) for message in found if is_from_bot(message)]


def welcomed(world: World, chat: str = "", *, times: int = 1) -> str:
    """The last of so many first words, when nothing is left to do."""
    eventually(lambda: len(cards(world, chat)) >= times, what="first words")
    eventually(lambda: not world.rows(UNFINISHED), what="the jobs are done")
    shown = cards(world, chat)
    assert len(shown) == times
    return shown[-1]


@contextmanager
def taken_in(world: World) -> Iterator[None]:
    """Afterwards the event of what is done inside has come, and nothing is left to do."""
    before = len(world.rows(ACCEPTED))
    yield
    eventually(lambda: len(world.rows(ACCEPTED)) > before, what="the event")
    eventually(lambda: not world.rows(UNFINISHED), what="the jobs are done")


def newcomer(world: World, name: str) -> tuple[str, str]:
    """A new person, and their chat with the bot."""
    made: dict[str, Any] = world.platform.post("/people", name=name)
    world.people[name] = made["open_id"]
    chats = world.platform.state()["chats"]
    mine = (c for c in chats if c["mode"] == "p2p" and made["open_id"] in c["members"])
    return made["open_id"], next(mine)["chat_id"]


def test_added_to_a_group_it_says_once_what_it_does_whose_memory_it_keeps_and_who_sees_it(
    world: World,
) -> None:
    group = world.in_a_new_group(told=True)
    for fresh in (True, False):
        world.platform.post(
            "/tell-again", chat_id=group.group, event_type=ADDED, times=3, new_event_id=fresh
        )
    shown = welcomed(group)

    for words in (
        "Whose memory I use",
        "Who can see it",
        "`@Memo /help`",
        "依据谁说过的话",
        "谁能看到",
    ):
        assert words in shown
    question, _ = group.ask("Bob", "remember that our launch is on 3 March")
    group.settled(question)
    assert len(cards(group)) == 2


def test_a_group_with_a_chinese_name_is_met_in_chinese(world: World) -> None:
    shown = welcomed(world.in_a_new_group(name="发布小组", told=True))
    assert "大家好，我是 Memo" in shown
    assert "Hi, I'm" not in shown


def test_added_again_after_it_was_removed_it_says_it_once_more(world: World) -> None:
    group = world.in_a_new_group(told=True)
    welcomed(group)
    with taken_in(world):
        world.platform.post("/leave", chat_id=group.group, open_id=world.bot_id)
    with taken_in(world):
        world.platform.post("/tell-again", chat_id=group.group, event_type=ADDED, new_event_id=True)
    world.platform.post("/join", chat_id=group.group, open_id=world.bot_id)
    welcomed(group, times=2)


def test_a_chat_that_is_opened_often_is_welcomed_once(world: World) -> None:
    person, chat = newcomer(world, "Dora")
    for _ in range(3):
        world.platform.post("/enter", **{"as": person})
    world.platform.post("/tell-again", chat_id=chat, event_type=OPENED, times=2, new_event_id=True)
    shown = welcomed(world, chat)
    assert "never repeat in a group what you tell me here" in shown
    question, _ = world.ask("Dora", "hello", chat=chat)
    world.settled(question)
    world.platform.post("/enter", **{"as": person})
    welcomed_and_answered = welcomed(world, chat, times=2)
    assert "Whose memory" not in welcomed_and_answered


def test_who_has_talked_with_it_before_is_not_welcomed(world: World) -> None:
    person, chat = newcomer(world, "Emil")
    question, _ = world.ask("Emil", "hello", chat=chat)
    world.settled(question)
    world.platform.post("/enter", **{"as": person})
    assert "Whose memory" not in welcomed(world, chat)


@pytest.mark.slow
@pytest.mark.parametrize("arrives", [True, False], ids=["it arrives", "it does not"])
def test_killed_while_it_speaks_it_has_said_it_once(world: World, arrives: bool) -> None:
    fault = {"delay_s": 2} if arrives else {"delay_s": 2, "status": 503}
    path = "/open-apis/im/v1/messages"
    world.platform.post("/faults", path_prefix=path, method="POST", **fault)
    before = len(world.platform.calls(path, "POST"))
    group = world.in_a_new_group(told=True)
    eventually(
        lambda: len(world.platform.calls(path, "POST")) > before, what="the welcome is being sent"
    )
    world.bot.workers[-1].kill()
    world.bot.start_worker()

    eventually(lambda: cards(group), what="first words")
    eventually(lambda: not world.rows(UNFINISHED), what="the jobs are done")
    assert len(cards(group)) == 1


def test_where_it_may_not_speak_it_goes_on_without(world: World) -> None:
    world.platform.post(
        "/faults", path_prefix="/open-apis/im/v1/messages", method="POST", status=400, code=230018
    )
    group = world.in_a_new_group(told=True)
    done = "select 1 from chats where chat_id = %s and welcomed_at is not null"
    eventually(lambda: world.rows(done, group.group), what="nothing more to do")
    assert cards(group) == []
    _, card = group.ask("Bob", "hello")
    assert "hello" in card
