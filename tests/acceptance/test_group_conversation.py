"""An attentive colleague: follows a discussion it is part of, and stays out of the rest."""

from __future__ import annotations

import json
import re
import threading

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, prompt_of


def decision(world: World, message_id: str) -> dict[str, object]:
    """The stored decision on a message, once it is made."""
    found = eventually(
        lambda: world.rows("select * from agent_decisions where message_id = %s", message_id),
        what="a decision",
    )
    return found[0]


def discuss(world: World, who: str, text: str) -> tuple[str, str]:
    """Asks the bot, and waits until the discussion has begun: the answer shows before."""
    question, answer = world.ask(who, text)
    world.settled(question)
    return question, answer


def test_a_follow_up_without_a_mention_is_answered_with_the_earlier_exchange(world: World) -> None:
    first, answer = discuss(world, "Alice", "our launch is on 3 March, please keep it in mind")
    world.model.forget()
    follow_up = world.say("Alice", "and what about the party?", root_id=first)
    world.answer(follow_up)

    assert decision(world, follow_up)["reason"] == "recent_followup"
    (request,) = world.model.requests()
    prompt = json.dumps(request["body"], ensure_ascii=False)
    assert "our launch is on 3 March" in prompt
    assert answer.split("> ", 1)[1] in prompt


def test_a_colleague_joins_with_a_related_question_and_gets_full_context(world: World) -> None:
    discuss(world, "Alice", "the launch is on 3 March in the large hall")
    world.model.forget()
    joining = world.say("Bob", "how many people fit into the hall?")
    card = world.answer(joining)

    assert card.startswith(f"<at id={world.people['Bob']}></at>")
    assert decision(world, joining)["reason"] == "recent_followup"
    (request,) = world.model.requests()
    prompt = json.dumps(request["body"], ensure_ascii=False)
    assert "Alice: the launch is on 3 March in the large hall" in prompt.replace(
        f"@{world.bot_name} ", ""
    )


def test_side_talk_is_left_alone_with_a_reason(world: World) -> None:
    discuss(world, "Alice", "the launch is on 3 March")
    side = world.say("Alice", "Bob, I'll send you the slides tonight")
    reply = world.say("Bob", "thanks, no hurry")

    assert decision(world, side)["respond"] is False
    assert decision(world, reply)["respond"] is False
    shown_to_all = [m for m in world.platform.messages(world.group) if not m["visible_to"]]
    assert len([m for m in shown_to_all if is_from_bot(m)]) == 1


def test_a_message_to_a_colleague_is_left_alone(world: World) -> None:
    discuss(world, "Alice", "the launch is on 3 March")
    other = world.say("Alice", "@Bob what do you think?")

    assert decision(world, other)["reason"] == "addressed_to_other"
    assert not world.answers(other)


def test_unanswered_talk_reaches_the_next_prompt(world: World) -> None:
    discuss(world, "Alice", "let us plan the offsite")
    talk = world.say("Bob", "I booked the blue cabin for us")
    decision(world, talk)
    world.model.forget()
    world.ask("Alice", "which cabin was it?")

    (request,) = world.model.requests()
    assert "Bob: I booked the blue cabin for us" in json.dumps(request["body"])


def test_what_the_transcript_has_no_room_for_is_recalled(world: World) -> None:
    discuss(world, "Bob", "the quince budget is 4100 euros")
    for _ in range(12):
        decision(world, world.say("Bob", "Alice, on our way to Lapland " + "we drove on " * 80))
    asked, _ = world.ask("Alice", "who brings the projector?")
    world.settled(asked)
    world.model.forget()
    follow_up = world.say("Alice", "and how much is the quince budget?")
    world.answer(follow_up)

    assert decision(world, follow_up)["reason"] == "recent_followup"
    (request,) = world.model.requests()
    assert "4100 euros" in json.dumps(request["body"])


def test_without_a_conversation_only_a_mention_speaks_to_the_bot(world: World) -> None:
    silent = world.say("Alice", "what about lunch?")

    assert decision(world, silent)["reason"] == "no_trigger"
    assert not world.answers(silent)


def test_a_recalled_message_leaves_transcript_and_memory(world: World) -> None:
    question, _ = discuss(world, "Alice", "the code is tangerine")
    aside = world.say("Bob", "I would rather have papaya")
    decision(world, aside)
    for message, person in ((question, "Alice"), (aside, "Bob")):
        world.platform.post("/recall", **{"message_id": message, "as": world.people[person]})
    eventually(
        lambda: len(world.rows("select 1 from recalled_messages where message_id = any(%s)",
                               [question, aside])) == 2,
        what="both recalls",
    )  # fmt: skip

    assert not world.rows(
        "select 1 from agent_messages where turn_id = %s and role = 'user'", question
    )
    world.model.forget()
    world.ask("Alice", "what did we say?")
    (request,) = world.model.requests()
    assert "papaya" not in json.dumps(request["body"])
    assert "the code is tangerine" not in json.dumps(request["body"])


def test_a_recall_before_the_answer_cancels_the_turn(world: World) -> None:
    rules = [{"reply": {"text": "too late", "delay_s": 5}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} wait for it")
    eventually(world.model.requests, what="the model is asked")
    world.platform.post("/recall", **{"message_id": question, "as": world.people["Alice"]})

    def state() -> str:
        found = world.rows("select state from agent_turns where id = %s", question)
        return str(found[0]["state"]) if found else ""

    eventually(lambda: state() == "cancelled", what="the turn is cancelled")
    eventually(
        lambda: '"cancelled"' in world.bot.workers[-1].output().rsplit(question, 1)[-1],
        what="the worker dropped the reply",
    )
    assert not world.answers(question)
    assert not world.stored(question)


def test_the_transcript_of_one_chat_never_appears_in_anothers_prompt(world: World) -> None:
    chats = [world.in_a_new_group() for _ in range(4)]

    def talk(number: int) -> None:
        here = chats[number]
        begun, _ = here.ask("Alice", f"topic-{number} begins")
        here.settled(begun)
        for turn in range(3):
            decision(here, here.say("Bob", f"aside-{number}-{turn} about nothing in particular"))
            asked, _ = here.ask("Alice", f"question-{number}-{turn} please")
            here.settled(asked)

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(len(chats))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    prompts = [prompt_of(request) for request in world.model.requests()]
    asked = {question[-1][1]: json.dumps(question) for question in prompts}
    assert len(asked) == 16
    for question, prompt in asked.items():
        mine = re.search(r"(?:topic|question)-(\d)", question)
        assert mine
        assert not re.search(rf"(?:topic|aside|question)-(?!{mine[1]})\d", prompt)
        # A third aside of Bob's would be a discussion of its own.
        if turn := re.search(r"question-(\d-[01])", question):
            assert f"aside-{turn[1]}" in prompt


def test_a_person_who_left_is_named_plainly_and_that_is_what_is_stored(world: World) -> None:
    rules = [{"reply": {"text": "@Bob should look at this", "delay_s": 1.5}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} ask @Bob")
    eventually(world.model.requests, what="the model is asked")
    world.platform.post("/leave", chat_id=world.group, open_id=world.people["Bob"])

    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    assert f"<at id={world.people['Bob']}>" not in row["content"]
    assert "@Bob" in row["content"]
    assert sent["message_id"] == row["message_id"]


def test_when_only_mentions_arrive_everything_else_still_works(world: World) -> None:
    with world.without_scopes("im:message.group_msg"):
        first, _ = world.ask("Alice", "remember the green folder")
        unheard = world.say("Bob", "what about the folder?")
        world.model.forget()
        world.ask("Alice", "which folder?", root_id=first)
        (request,) = world.model.requests()
        assert "remember the green folder" in json.dumps(request["body"])
        assert not world.rows("select 1 from agent_decisions where message_id = %s", unheard)


def test_a_model_cannot_notify_everybody_or_inject_a_tag(world: World) -> None:
    text = "@all look <at id=all></at> &#60;at id=all&#62;&#60;/at&#62; @所有人 <AT ID=all></AT>"
    world.model.control("script", {"rules": [{"reply": {"text": text}}]})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask("Alice", "say it to everybody")

    (sent,) = world.answers(question)
    assert sent["notifies"] == [world.people["Alice"]]
