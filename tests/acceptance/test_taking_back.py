"""A message that is taken back is gone, wherever its words went; through the real processes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import eventually
from lab.doubles.sentinel import tables_with
from tests.acceptance.conftest import World, is_from_bot, markdown

OWN_PROCESSES = True
MESSAGES = "/open-apis/im/v1/messages/"


@pytest.fixture
def word() -> str:
    """A word nobody else uses."""
    return f"q{uuid.uuid4().hex[:12]}"


def take_back(world: World, who: str, message: str) -> None:
    world.platform.post("/recall", **{"message_id": message, "as": world.people[who]})


def where(world: World, word: str) -> set[str]:
    """The tables that hold the word anywhere, and the processes whose log does."""
    with psycopg.connect(world.database_url, autocommit=True) as database:
        found = tables_with(database, word)
    processes = [*world.bot.workers, *([world.bot.web] if world.bot.web else [])]
    return found | {process.name for process in processes if word in process.output()}


def shown(world: World) -> list[dict[str, Any]]:
    """The bot's messages that people still see in the group."""
    return [m for m in world.platform.messages(world.group) if is_from_bot(m) and not m["deleted"]]


def tell(world: World, word: str) -> str:
    """Alice tells the word, which the model keeps as a fact, in a note, and repeats."""
    calls = [
        {
            "name": "update_working_memory",
            "arguments": {"scope": "person", "patch": {"code": word}},
        },
        {"name": "create_note", "arguments": {"title": f"About {word}", "body": word}},
    ]
    rules = [{"when": [{"contains": word}], "reply": {"tool_calls": calls}}]
    world.model.control("script", {"rules": [*rules, {"reply": {"text": f"Kept: {word}"}}]})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask("Alice", f"the code is {word}")
    world.settled(question)
    assert {"agent_messages", "agent_working_memory", "agent_notes", "chat_transcript"} <= where(
        world, word
    )
    return question


def test_nothing_stays_of_a_message_and_its_card_is_withdrawn(world: World, word: str) -> None:
    question = tell(world, word)
    later, card = world.ask("Alice", "and again?", root_id=question)
    world.settled(later)
    assert word in card

    take_back(world, "Alice", question)

    eventually(lambda: not where(world, word), what="the word is gone everywhere")
    eventually(lambda: not shown(world), what="both cards are withdrawn")
    world.model.control("mode", {"mode": "echo"})
    world.model.forget()
    asked, _ = world.ask("Alice", "what was the code?", root_id=question)
    world.settled(asked)
    (request,) = world.model.requests()
    assert word not in json.dumps(request["body"])
    eventually(lambda: not where(world, word), what="nothing came back")
    eventually(lambda: not world.rows("select 1 from agent_withdrawals"), what="it is over")


def test_a_card_that_cannot_be_withdrawn_says_so(world: World, word: str) -> None:
    question = tell(world, word)
    refusal = {"code": 230026, "msg": "No permission to recall this message."}
    world.platform.post(
        "/faults", path_prefix=MESSAGES, method="DELETE", status=400, body=refusal, times=9
    )

    take_back(world, "Alice", question)

    [card] = eventually(
        lambda: [m for m in shown(world) if word not in json.dumps(m)], what="a notice"
    )
    assert "所回答的消息已撤回" in markdown(card)
    assert "was recalled" in markdown(card)
    eventually(lambda: not world.rows("select 1 from agent_withdrawals"), what="it is over")
    assert not where(world, word)


def test_neither_a_killed_worker_nor_feishu_away_keeps_a_card(world: World, word: str) -> None:
    question = tell(world, word)
    world.platform.post("/faults", path_prefix=MESSAGES, method="DELETE", status=503, times=99)

    take_back(world, "Alice", question)
    eventually(lambda: world.rows("select 1 from agent_withdrawals"), what="it is to be withdrawn")
    world.bot.workers[-1].kill()
    assert [m for m in shown(world) if word in json.dumps(m)]
    world.platform.forget_faults()
    world.bot.start_worker()

    eventually(lambda: not shown(world), what="the card is withdrawn")
    eventually(lambda: not where(world, word), what="the word is gone everywhere")


def test_what_is_taken_back_while_its_card_is_on_its_way_is_withdrawn(
    world: World, word: str
) -> None:
    world.platform.post("/faults", path_prefix=MESSAGES, method="POST", delay_s=3, times=2)
    question = world.say("Alice", f"@{world.bot_name} the code is {word}")
    eventually(lambda: world.stored(question), what="the reply is stored")

    take_back(world, "Alice", question)
    eventually(
        lambda: world.rows("select 1 from recalled_messages where message_id = %s", question),
        what="the taking back",
    )

    eventually(
        lambda: '"cancelled"' in world.bot.workers[-1].output().rsplit(question, 1)[-1],
        what="the turn is over",
    )
    eventually(lambda: not shown(world), what="nothing is shown")
    eventually(lambda: not where(world, word), what="the word is gone everywhere")


def test_a_card_that_somebody_else_withdraws_is_not_kept(world: World, word: str) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": f"It is {word}"}}]})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask("Alice", "what is it?")
    world.settled(question)

    take_back(world, "Bob", world.answers(question)[0]["message_id"])

    eventually(lambda: not where(world, word), what="the word is gone everywhere")


def test_talk_that_is_taken_back_before_it_was_heard_is_not_kept(world: World, word: str) -> None:
    question, _ = world.ask("Alice", "let us talk")
    world.settled(question)
    aside = world.say("Bob", f"I think of {word}")
    take_back(world, "Bob", aside)

    eventually(
        lambda: world.rows("select 1 from recalled_messages where message_id = %s", aside),
        what="the taking back",
    )
    eventually(lambda: not where(world, word), what="the word is gone everywhere")


def test_an_answer_that_repeats_talk_goes_when_the_talk_is_taken_back(
    world: World, word: str
) -> None:
    world.settled(world.ask("Alice", "let us talk")[0])
    heard = world.say("Bob", f"the door of the store room opens with {word}")
    was_heard = "select 1 from chat_transcript where message_id = %s"
    eventually(lambda: world.rows(was_heard, heard), what="the talk is heard")
    told = f"Bob says the door of the store room opens with {word}"
    world.model.control("script", {"rules": [{"reply": {"text": told}}]})
    world.model.control("mode", {"mode": "rules"})
    world.settled(world.ask("Alice", "what does Bob say?")[0])
    assert any(word in str(card) for card in shown(world))

    take_back(world, "Bob", heard)

    eventually(lambda: not where(world, word), what="the word is gone everywhere")
    eventually(lambda: not any(word in str(card) for card in shown(world)), what="no card shows it")


def test_an_answer_goes_that_tells_in_other_words_what_a_tool_found(
    world: World, word: str
) -> None:
    source = world.ask("Alice", f"the alarm of the Paris warehouse is silenced by {word}")[0]
    world.settled(source)
    in_group = "select 1 from chat_members where open_id = %s and chat_id = %s"
    people = (world.people["Alice"], world.group)
    eventually(lambda: world.rows(in_group, *people), what="who is in the group")
    search = {"name": "recall", "arguments": {"query": "Paris alarm", "scope": "everywhere"}}
    world.model.forget()
    rules = [
        {"when": [{"contains": word, "in": "prompt"}], "reply": {"text": f"Say {word} in Paris."}},
        {"reply": {"tool_calls": [search]}},
    ]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    chats = world.platform.state()["chats"]
    mine = (c for c in chats if c["mode"] == "p2p" and people[0] in c["members"])
    alone = next(mine)["chat_id"]
    (row,) = world.settled(world.say("Alice", "what was it again?", chat=alone))
    assert word in row["content"]

    take_back(world, "Alice", source)

    eventually(lambda: not where(world, word), what="the word is gone everywhere")
    eventually(
        lambda: all(one["deleted"] for one in world.platform.messages(alone) if is_from_bot(one)),
        what="the card goes",
    )


def test_an_answer_that_is_being_made_is_made_again_without_what_is_taken_back(
    world: World, word: str
) -> None:
    world.settled(world.ask("Alice", "let us talk")[0])
    heard = world.say("Bob", f"the code is {word}")
    was_heard = "select 1 from chat_transcript where message_id = %s"
    eventually(lambda: world.rows(was_heard, heard), what="the talk is heard")
    world.model.forget()
    note = {"name": "create_note", "arguments": {"title": "Code", "body": word}}
    told = [{"contains": word, "in": "prompt"}]
    notes = {"when": told, "reply": {"tool_calls": [note]}, "after_tool": False}
    slow = {"when": told, "reply": {"text": f"It is {word}.", "delay_s": 4}}
    rules = [notes, slow, {"reply": {"text": "Nobody said it."}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} note which code Bob named")
    kept = "select 1 from agent_notes where body = %s"
    eventually(lambda: world.rows(kept, word), what="a note of it")
    eventually(lambda: len(world.model.requests()) > 1, what="the model is asked again")

    take_back(world, "Bob", heard)

    (row,) = world.settled(question)
    assert row["content"].endswith("Nobody said it.")
    eventually(lambda: not where(world, word), what="the word is gone everywhere")
    assert not any(word in str(card) for card in shown(world))


@pytest.mark.slow
def test_killed_between_sending_and_marking_the_card_goes_all_the_same(
    world: World, word: str
) -> None:
    world.platform.disturb_replies(delay_s=1.5)
    question = world.say("Alice", f"@{world.bot_name} the code is {word}")
    eventually(lambda: world.stored(question), what="the reply is stored")
    with psycopg.connect(world.database_url) as blocker:
        blocker.execute("select 1 from agent_messages where turn_id = %s for update", [question])
        eventually(lambda: shown(world), what="the card is there")
        assert world.stored(question)[0]["status"] == "pending"
        world.bot.workers[-1].kill()
    take_back(world, "Alice", question)
    world.bot.start_worker()

    eventually(lambda: not shown(world), what="the card is withdrawn")
    eventually(lambda: not where(world, word), what="the word is gone everywhere")
