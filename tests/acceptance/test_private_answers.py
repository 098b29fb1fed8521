"""Private knowledge in a group, through the real processes: offered to who asked, shown on their
press, published on another, and never part of the group's answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown, prompt_of

OWN_PROCESSES = True
TOLD = "The wifi password of the Berlin office is hunter2"
ASKED = "What is the wifi password of the Berlin office?"
_NOW = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d .*$", re.MULTILINE)


def tell(world: World, who: str, text: str = TOLD) -> str:
    """Says something to the bot alone; returns that chat."""
    chats = world.platform.state()["chats"]
    person = world.people[who]
    chat = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and person in c["members"])
    said = world.say(who, text, chat=chat)
    world.settled(said)
    return str(chat)


def keep(world: World, who: str, chat: str) -> None:
    """A lasting fact and a note of `who`, kept in that chat."""
    (turn,) = world.rows(
        "select distinct on (user_id) user_id, tenant_key, conversation_id from agent_turns"
        " where chat_id = %s and user_id = %s",
        chat,
        world.people[who],
    )
    place = (turn["user_id"], turn["tenant_key"], chat, turn["conversation_id"])
    world.rows(
        "insert into agent_working_memory"
        " (user_id, actor_id, tenant_key, chat_id, conversation_id, scope, content)"
        " values (%s, %s, %s, %s, '', 'user', '{\"wifi\": \"hunter2\"}') returning 1",
        place[0],
        *place[:3],
    )
    world.rows(
        "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title, body)"
        " values ('note_wifi', %s, %s, %s, %s, 'Berlin wifi', 'hunter2') returning 1",
        *place,
    )


def shown_to(world: World, who: str, *, chat: str | None = None) -> list[dict[str, Any]]:
    """The cards that only `who` sees in the chat, without those that were taken away."""
    return [
        message
        for message in world.platform.messages(chat or world.group)
        if message["visible_to"] == world.people[who] and not message["deleted"]
    ]


def looked_up(world: World, question: str) -> None:
    """Waits until the look-up after a question is over."""

    def over() -> bool:
        jobs = world.rows(
            "select from feishu_bot.jobs"
            " where status in ('waiting', 'running') and args ->> 'turn_id' = %s",
            question,
        )
        return not jobs

    world.settled(question)
    eventually(over, what="the look-up is over")


def jobs_so_far(world: World) -> int:
    return world.bot.workers[-1].output().count('"private.looked_up"')


def offered(world: World, who: str, question: str) -> dict[str, Any]:
    looked_up(world, question)
    (card,) = shown_to(world, who)
    return card


def an_hour_later(world: World) -> None:
    """The offers so far are an hour older."""
    world.rows(
        "update agent_turns set created_at = created_at - interval '1 hour'"
        " where origin = 'offer' returning 1"
    )


def press(world: World, who: str, card: dict[str, Any]) -> dict[str, Any]:
    body = {"as": world.people[who], "message_id": card["message_id"], "index": 0}
    return dict(world.platform.post("/click", **body))


def shown_after(world: World, who: str, offer: dict[str, Any]) -> dict[str, Any]:
    """The one card that `who` sees when the offer has done its work and is gone."""

    def instead() -> dict[str, Any] | None:
        shown = shown_to(world, who)
        taken = offer["message_id"] not in [one["message_id"] for one in shown]
        return shown[0] if taken and len(shown) == 1 else None

    card = eventually(instead, what="the private answer in place of the offer")
    assert card
    return card


def take_back(world: World, who: str, question: str) -> None:
    """Returns when the question is gone."""
    world.platform.post("/recall", message_id=question, **{"as": world.people[who]})
    gone = "select 1 from agent_messages where turn_id = %s and role = 'user'"
    eventually(lambda: not world.rows(gone, question), what="the question is gone")


def button_of(card: dict[str, Any]) -> dict[str, Any]:
    (button,) = [one for one in card["card"]["body"]["elements"] if one["tag"] == "button"]
    return dict(button)


def answered(world: World, card: dict[str, Any]) -> str:
    """Waits for what the button of a card leads to; returns the id of that turn."""
    asked = world.turn_of(button_of(card)["behaviors"][0]["value"]["b"])
    world.settled(asked)
    return asked


def told(world: World) -> str:
    """The whole request of the last question, without the time."""
    return _NOW.sub("", json.dumps(world.model.requests()[-1]["body"], ensure_ascii=False))


def test_the_groups_answer_is_the_same_with_and_without_private_knowledge(world: World) -> None:
    first, _ = world.ask("陈晨", ASKED)
    looked_up(world, first)
    without = [_NOW.sub("", text) for _, text in prompt_of(world.model.requests()[-1])]
    assert shown_to(world, "陈晨") == []

    keep(world, "陈晨", tell(world, "陈晨"))
    later = world.in_a_new_group()
    world.model.forget()
    second, _ = later.ask("陈晨", ASKED)
    looked_up(later, second)

    (request,) = world.model.requests()
    assert [_NOW.sub("", text) for _, text in prompt_of(request)] == without
    assert "hunter2" not in json.dumps(request)
    assert len(shown_to(later, "陈晨")) == 1


def test_offered_shown_and_shared(world: World) -> None:
    alone = tell(world, "Alice")
    question, _ = world.ask("Alice", ASKED)
    offer = offered(world, "Alice", question)
    assert offer["chat_id"] == world.group
    assert ASKED in markdown(offer)
    assert "hunter2" not in json.dumps(offer)
    assert button_of(offer)["text"]["content"] == "Show me"
    world.model.forget()

    assert "On it" in press(world, "Alice", offer)["toast"]["content"]
    shown = answered(world, offer)
    (request,) = world.model.requests()
    assert "hunter2" in json.dumps(request["body"])
    card = shown_after(world, "Alice", offer)
    (stored,) = world.stored(shown)
    assert stored["content"] == markdown(card)
    person = world.people["Alice"]
    assert (stored["chat_id"], stored["user_id"]) == (alone, person)
    assert stored["conversation_id"] == f"feishu:{alone}:main"
    given = (
        "select bot_private.given_ids(given_messages, given) && drawn_on as noted"
        " from agent_turns where id = %s"
    )
    assert world.rows(given, shown) == [{"noted": True}], "taking back finds what it was given"
    assert button_of(card)["text"]["content"] == "Share here"
    again, _ = world.ask("Alice", "And what did I ask?", root_id=question)
    assert "hunter2" not in json.dumps(world.model.requests()[-1]["body"]), "it is not the group's"
    looked_up(world, again)

    assert "On it" in press(world, "Alice", card)["toast"]["content"]
    shared = answered(world, card)
    (sent,) = world.answers(shared)
    assert markdown(sent) == markdown(card)
    assert [one["tag"] for one in sent["card"]["body"]["elements"]] == ["markdown"]
    assert (sent["visible_to"], sent["root_id"]) == ("", question)
    (published,) = world.stored(shared)
    assert published["content"] == markdown(card)
    assert (published["chat_id"], published["actor_id"]) == (world.group, person)
    assert "already used" in press(world, "Alice", card)["toast"]["content"]
    assert len(world.model.requests()) == 2, "sharing asks no model"
    world.settled(world.say("Alice", "And what was that again?", chat=alone))
    (_, *said) = prompt_of(world.model.requests()[-1])
    assert markdown(card) in [text for _, text in said], "it is part of what was said in p2p"


def as_earlier_versions_kept(world: World, who: str, question: str) -> str:
    """Moves the offer to `question` where earlier versions kept it; returns that conversation."""
    person = world.people[who]
    former = f"feishu:{person}:{question}"
    (moved,) = world.rows(
        "with offer as (select * from agent_turns where origin = 'offer' and parent_id = %s),"
        " chat as (insert into agent_chats (id, user_id, tenant_key, chat_id, chat_type, root_id)"
        "   select %s, user_id, tenant_key, user_id, 'p2p', parent_id from offer returning id),"
        " turn as (update agent_turns t set conversation_id = chat.id, chat_id = t.actor_id"
        "   from offer, chat where t.id = offer.id returning t.id)"
        " update agent_buttons b set conversation_id = chat.id, chat_id = b.actor_id"
        " from turn, chat where b.turn_id = turn.id returning b.conversation_id",
        question,
        former,
    )
    assert moved["conversation_id"] == former
    return former


def test_what_an_earlier_version_offered_is_shown_and_shared_and_stays_where_it_was(
    world: World,
) -> None:
    tell(world, "Alice")
    question, _ = world.ask("Alice", ASKED)
    offer = offered(world, "Alice", question)
    former = as_earlier_versions_kept(world, "Alice", question)

    press(world, "Alice", offer)
    shown = answered(world, offer)
    card = shown_after(world, "Alice", offer)
    (stored,) = world.stored(shown)
    assert (stored["conversation_id"], stored["content"]) == (former, markdown(card))
    press(world, "Alice", card)
    (sent,) = world.answers(answered(world, card))
    assert markdown(sent) == markdown(card)
    take_back(world, "Alice", question)
    assert world.stored(shown) == []


def test_who_never_wrote_to_the_bot_alone_is_shown_what_they_may_read(world: World) -> None:
    person = world.platform.post("/people", name="Nora")["open_id"]
    world.people = {**world.people, "Nora": person}
    world.platform.post("/join", chat_id=world.group, open_id=person)
    there = world.in_a_new_group()
    there.settled(there.ask("Nora", "The door code of the attic is 8151")[0])
    world.rows(
        "insert into chat_members (tenant_key, chat_id, open_id)"
        " select distinct tenant_key, chat_id, actor_id from agent_turns"
        " where chat_id = %s on conflict do nothing returning 1",
        there.group,
    )
    question, _ = world.ask("Nora", "What is the door code of the attic?")
    offer = offered(world, "Nora", question)
    press(world, "Nora", offer)
    shown = answered(world, offer)
    card = shown_after(world, "Nora", offer)
    (stored,) = world.stored(shown)
    assert (stored["conversation_id"], stored["content"]) == (
        f"feishu:{person}:main", markdown(card)
    )  # fmt: skip

    alone = tell(world, "Nora", "Which door code was I shown?")
    assert "8151" in json.dumps(world.model.requests()[-1]["body"]), "it is found in p2p"
    an_hour_later(world)
    again, _ = world.ask("Nora", "What is the door code of the attic?")
    looked_up(world, again)
    (turn,) = world.rows("select chat_id from agent_turns where parent_id = %s", again)
    assert turn["chat_id"] == alone, "from now on there is one"


def test_nothing_is_offered_to_others_or_for_what_does_not_fit(world: World) -> None:
    tell(world, "Alice")
    jobs = jobs_so_far(world)
    world.model.control("mode", {"mode": "echo", "delay_s": 2.0})  # the look is over before that
    for who, text in (("Bob", ASKED), ("Alice", "Who brings the cake?"), ("Alice", "/help")):
        question, _ = world.ask(who, text)
        looked_up(world, question)
        assert shown_to(world, who) == []
    assert jobs_so_far(world) == jobs, "what fits nothing is no job"
    world.model.control("mode", {"mode": "echo", "delay_s": 0.0})
    offered(world, "Alice", world.ask("Alice", ASKED)[0])
    eventually(lambda: jobs_so_far(world) == jobs + 1, what="a job")


def test_what_the_group_was_told_too_is_not_offered(world: World) -> None:
    tell(world, "Alice")
    told_here, _ = world.ask("Bob", TOLD)
    world.settled(told_here)
    question, _ = world.ask("Alice", ASKED)
    looked_up(world, question)
    assert shown_to(world, "Alice") == []


def test_beside_an_apology_nothing_is_offered(world: World) -> None:
    tell(world, "Alice")
    refusal = {"reply": {"status": 401, "body": {"error": {"message": "bad key"}}}}
    world.model.control("script", {"rules": [refusal]})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask("Alice", ASKED)
    looked_up(world, question)
    assert shown_to(world, "Alice") == []
    (turn,) = world.rows("select outcome from agent_turns where id = %s", question)
    assert turn["outcome"] == "apologised"


def test_what_was_told_in_another_group_is_shown_while_one_is_in_it(world: World) -> None:
    there = world.in_a_new_group()
    told_there, _ = there.ask("Bob", "The door code of the archive is 4711")
    world.settled(told_there)
    world.rows(
        "insert into chat_members (tenant_key, chat_id, open_id)"
        " select tenant_key, chat_id, actor_id from agent_turns where id = %s"
        " on conflict do nothing returning 1",
        told_there,
    )
    question, _ = world.ask("Bob", "What is the door code of the archive?")
    offer = offered(world, "Bob", question)

    press(world, "Bob", offer)
    answered(world, offer)
    assert "4711" in json.dumps(world.model.requests()[-1]["body"])


def test_nobody_else_presses_it(world: World) -> None:
    tell(world, "Alice")
    question, _ = world.ask("Alice", ASKED)
    offer = offered(world, "Alice", question)
    value = button_of(offer)["behaviors"][0]["value"]
    card = world.answers(question)[0]
    world.model.forget()

    body = {"as": world.people["Bob"], "message_id": card["message_id"], "value": value}
    forged = world.platform.post("/click", **body)
    assert "no longer works" in forged["toast"]["content"]
    assert world.model.requests() == []
    assert "On it" in press(world, "Alice", offer)["toast"]["content"]
    answered(world, offer)


def test_where_feishu_shows_nothing_beside_it_goes_the_way_of_p2p(world: World) -> None:
    alone = tell(world, "Alice")
    people = list(world.people.values())
    made = world.platform.post("/chats", name="Topics", members=people, topics=True)
    topics = world.in_a_new_group()
    topics.group = made["chat_id"]
    before = len(world.platform.messages(alone))
    question, _ = topics.ask("Alice", ASKED)
    looked_up(topics, question)

    assert shown_to(topics, "Alice") == []
    (offer,) = world.platform.messages(alone)[before:]
    assert ASKED in markdown(offer)
    press(world, "Alice", offer)
    answered(world, offer)
    card = world.platform.messages(alone)[-1]
    assert button_of(card)["text"]["content"] == "Share in the group"
    press(world, "Alice", card)
    (sent,) = topics.answers(answered(world, card))
    assert markdown(sent) == markdown(card)
    assert sent["chat_id"] == topics.group


def test_for_a_question_in_a_thread_the_offer_comes_in_p2p_and_is_shared_in_the_thread(
    world: World,
) -> None:
    alone = tell(world, "Alice")
    root = world.say("Bob", "Who knows about Berlin?")
    before = len(world.platform.messages(alone))
    question, _ = world.ask("Alice", ASKED, reply_to=root)
    looked_up(world, question)

    assert shown_to(world, "Alice") == [], "nothing stands in the group, away from the thread"
    (offer,) = world.platform.messages(alone)[before:]
    assert f"You asked “{ASKED}” in a group" in markdown(offer)
    press(world, "Alice", offer)
    shown = answered(world, offer)
    card = world.platform.messages(alone)[-1]
    assert markdown(card) == world.stored(shown)[0]["content"]
    press(world, "Alice", card)
    (sent,) = world.answers(answered(world, card))
    assert (sent["chat_id"], sent["root_id"], sent["visible_to"]) == (world.group, root, "")
    take_back(world, "Alice", question)
    eventually(lambda: world.platform.messages(alone)[before]["deleted"], what="the offer is gone")


def test_a_question_that_was_taken_back_is_not_answered_privately(world: World) -> None:
    card = world.platform.messages(tell(world, "Alice"))[-1]["message_id"]
    question, _ = world.ask("Alice", ASKED)
    offer = offered(world, "Alice", question)
    world.model.forget()
    take_back(world, "Alice", question)

    eventually(lambda: not shown_to(world, "Alice"), what="the offer goes")
    value = button_of(offer)["behaviors"][0]["value"]
    pressed = {"as": world.people["Alice"], "message_id": card, "value": value}
    assert "no longer works" in world.platform.post("/click", **pressed)["toast"]["content"]
    assert world.model.requests() == []


def test_an_offer_in_p2p_goes_with_its_question_too(world: World) -> None:
    alone = tell(world, "Alice")
    world.platform.post("/faults", path_prefix="/open-apis/ephemeral", method="POST", code=18053)
    question, _ = world.ask("Alice", ASKED)
    looked_up(world, question)
    offer = world.platform.messages(alone)[-1]
    assert ASKED in markdown(offer)
    take_back(world, "Alice", question)

    def gone() -> bool:
        shown = {one["message_id"]: one for one in world.platform.messages(alone)}
        return bool(shown[offer["message_id"]]["deleted"])

    eventually(gone, what="the offer goes")


def test_a_question_that_is_taken_back_while_it_is_offered_leaves_no_offer(world: World) -> None:
    tell(world, "Alice")
    world.platform.post("/faults", path_prefix="/open-apis/ephemeral", method="POST", delay_s=3)
    question = world.say("Alice", f"@{world.bot_name} {ASKED}")
    offering = "select 1 from agent_turns where origin = 'offer' and parent_id = %s"
    eventually(lambda: world.rows(offering, question), what="an offer")
    take_back(world, "Alice", question)
    looked_up(world, question)

    shown = [one for one in world.platform.messages(world.group) if one["visible_to"]]
    assert len(shown) == 1, "it was shown"
    eventually(lambda: not shown_to(world, "Alice"), what="the offer goes")


def test_what_was_told_alone_is_taken_back_and_with_it_what_was_made_of_it(world: World) -> None:
    alone = tell(world, "Alice", "The alarm of the Paris warehouse is silenced by roybatty")
    source = world.platform.messages(alone)[-2]["message_id"]
    in_other_words = {
        "when": [{"contains": "roybatty", "in": "prompt"}],
        "reply": {"text": "The one of Bladerunner."},
    }
    world.model.control("script", {"rules": [in_other_words, {"reply": {"text": "No idea."}}]})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask("Alice", "What silences the alarm of the Paris warehouse?")
    offer = offered(world, "Alice", question)
    press(world, "Alice", offer)
    shown = answered(world, offer)
    card = shown_after(world, "Alice", offer)
    assert "Bladerunner" in markdown(card)
    press(world, "Alice", card)
    shared = answered(world, card)
    assert len(world.answers(shared)) == 1

    world.platform.post("/recall", message_id=source, **{"as": world.people["Alice"]})

    eventually(lambda: not shown_to(world, "Alice"), what="the private answer goes")
    eventually(
        lambda: all(one["deleted"] for one in world.answers(shared)), what="what was shared, too"
    )
    for turn in (shown, shared):
        assert world.stored(turn) == []
    assert [one for one in world.answers(question) if not one["deleted"]], "this drew on nothing"


def test_an_answer_that_was_given_what_goes_meanwhile_is_made_again(world: World) -> None:
    alone = tell(world, "Alice")
    told_in = world.rows("select id from agent_turns where chat_id = %s", alone)
    offer = offered(world, "Alice", world.ask("Alice", ASKED)[0])
    world.model.forget()
    world.model.control("mode", {"mode": "echo", "delay_s": 6.0})
    press(world, "Alice", offer)
    eventually(lambda: world.model.requests(), what="the model is asked")
    world.rows("select note_gone(%s, %s)::text", [turn["id"] for turn in told_in], alone)
    world.model.control("mode", {"mode": "echo", "delay_s": 0.0})

    shown = answered(world, offer)
    assert len(world.model.requests()) == 2
    assert [one["status"] for one in world.stored(shown)] == ["sent"]


def ephemeral_calls(world: World) -> list[dict[str, Any]]:
    """The calls that show a card to one person, as far as they have reached the platform."""
    calls = world.platform.get("/requests", path_prefix="/open-apis/ephemeral/v1/send")["items"]
    return list(calls)


@pytest.mark.parametrize("moment", ["before the look-up", "while it is offered"])
def test_a_worker_that_is_killed_offers_once(world: World, moment: str) -> None:
    tell(world, "Alice")
    before = moment == "before the look-up"
    path = "/open-apis/im/v1/messages" if before else "/open-apis/ephemeral"
    world.platform.post("/faults", path_prefix=path, method="POST", delay_s=3)
    earlier = len(ephemeral_calls(world))
    question = world.say("Alice", f"@{world.bot_name} {ASKED}")
    if before:
        being_sent = "select 1 from agent_messages where turn_id = %s and role = 'assistant'"
        eventually(lambda: world.rows(being_sent, question), what="a stored reply")
    else:
        # The row alone is not enough: an offer that may have been sent is not sent again.
        eventually(lambda: len(ephemeral_calls(world)) > earlier, what="an offer on its way")
    world.bot.workers[-1].kill()
    world.bot.start_worker()
    looked_up(world, question)

    offers = eventually(lambda: shown_to(world, "Alice"), what="an offer")
    assert len(offers) == 1
