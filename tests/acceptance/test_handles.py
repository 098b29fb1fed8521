"""What stands below an answer: the folded line, feedback by button and reaction, Again, marks."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lab.doubles.processes import eventually
from memory.models import Origin
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_buttons import buttons, click, toast

HELPFUL, UNHELPFUL, AGAIN = {"h": "helpful"}, {"h": "unhelpful"}, {"h": "again"}


def handles(card: dict[str, Any]) -> list[str]:
    """The labels of the small buttons below an answer."""
    columns = [e for e in elements(card) if e["tag"] == "column_set"]
    return [
        column["elements"][0]["text"]["content"] for one in columns for column in one["columns"]
    ]


def elements(card: dict[str, Any]) -> list[dict[str, Any]]:
    body = card["card"] or json.loads(card["content"])
    return list(body["body"]["elements"])


def folded(card: dict[str, Any]) -> str:
    """The folded line with what it unfolds to."""
    (panel,) = [e for e in elements(card) if e["tag"] == "collapsible_panel"]
    assert panel["expanded"] is False
    lines = [
        panel["header"]["title"]["content"],
        *(e.get("content") or e["text"]["content"] for e in panel["elements"]),
    ]
    return "\n".join(lines)


def feedback(world: World, question: str) -> list[tuple[str, str, bool]]:
    names = {open_id: name for name, open_id in world.people.items()}
    rows = world.rows("select * from agent_feedback where turn_id = %s order by source", question)
    return [(names[row["actor_id"]], row["source"], row["helpful"]) for row in rows]


def test_an_answer_says_folded_what_it_used_and_none_of_it_is_stored(world: World) -> None:
    first, _ = world.ask("Alice", "our word is apricot")
    world.settled(first)
    steps = [
        {"tool_calls": [{"name": "create_note", "arguments": {"title": "Pasta"}}]},
        {"text": "It was apricot."},
    ]
    world.model.control("script", {"steps": steps})
    question, said = world.ask("Bob", "do you remember which word we had?")
    (row,) = world.settled(question)
    (card,) = world.answers(question)

    assert said == row["content"] == markdown(card)
    assert "create_note" not in folded(card)
    assert "1 source" in folded(card)
    assert "“our word is apricot”" in folded(card)
    assert handles(card) == ["👍", "👎", "Again"]
    (turn,) = world.rows("select shown from agent_turns where id = %s", question)
    assert "apricot" not in json.dumps(turn)


def test_what_the_answer_did_not_use_is_not_named(world: World) -> None:
    first, _ = world.ask("Alice", "our word is apricot")
    world.settled(first)
    world.model.control("script", {"steps": [{"text": "That is for Carol to say."}]})
    question, _ = world.ask("Bob", "do you remember which word we had?")
    world.settled(question)
    (card,) = world.answers(question)

    assert "apricot" in str(world.model.requests()[-1]), "it was given"
    assert "earlier message" not in folded(card)


def test_a_command_has_neither(world: World) -> None:
    question, _ = world.ask("Alice", "/help")
    world.settled(question)
    (card,) = world.answers(question)
    assert [e["tag"] for e in elements(card) if e["tag"] not in ("markdown", "button")] == []


def test_feedback_is_of_whoever_reads_the_card_and_can_be_taken_back(world: World) -> None:
    question, _ = world.ask("Alice", "hello")
    world.settled(question)
    assert "Thanks!" in toast(click(world, "Alice", question, HELPFUL))
    assert "Thanks!" in toast(click(world, "Bob", question, UNHELPFUL))
    assert sorted(feedback(world, question)) == [
        ("Alice", "button", True), ("Bob", "button", False)
    ]  # fmt: skip
    assert "Thanks!" in toast(click(world, "Bob", question, HELPFUL))
    assert "removed" in toast(click(world, "Alice", question, HELPFUL))
    assert feedback(world, question) == [("Bob", "button", True)]


def test_a_reaction_counts_as_feedback_until_it_is_taken_away(world: World) -> None:
    question, _ = world.ask("Alice", "hello")
    world.settled(question)
    (card,) = world.answers(question)

    def react(who: str, emoji: str, message: str = card["message_id"]) -> None:
        body = {"as": world.people[who], "message_id": message, "emoji_type": emoji}
        world.platform.post("/reactions", **body)

    react("Bob", "ThumbsDown")
    eventually(lambda: feedback(world, question) == [("Bob", "reaction", False)])
    react("Alice", "THUMBSUP", question)  # of a person's message: nothing
    react("Alice", "SMILE")
    react("Bob", "ThumbsDown")
    eventually(lambda: feedback(world, question) == [], what="it is taken away")
    assert world.rows("select count(*) n from agent_feedback where chat_id = %s", world.group) == [
        {"n": 0}
    ]


def test_feedback_goes_with_the_question_that_is_taken_back(world: World) -> None:
    question, _ = world.ask("Alice", "hello")
    world.settled(question)
    toast(click(world, "Bob", question, UNHELPFUL))
    cards = "/open-apis/im/v1/messages"  # they stay while Feishu does not withdraw them
    world.platform.post("/faults", path_prefix=cards, method="DELETE", status=503, times=0)
    world.platform.post("/recall", message_id=question, **{"as": world.people["Alice"]})
    eventually(lambda: feedback(world, question) == [], what="the feedback is gone")
    assert "no longer works" in toast(click(world, "Bob", question, HELPFUL))
    assert feedback(world, question) == []
    world.platform.forget_faults()


def again(turn_id: str) -> str:
    return Origin("again", turn_id).turn_id


def test_again_is_a_turn_of_its_own_linked_to_the_first(world: World) -> None:
    steps = [{"text": "The first answer."}, {"text": "Another answer."}, {"text": "A third one."}]
    world.model.control("script", {"steps": steps})
    question, _ = world.ask("Alice", "tell me a word")
    world.settled(question)
    assert "Only the person who asked" in toast(click(world, "Bob", question, AGAIN))
    assert "On it" in toast(click(world, "Alice", question, AGAIN))
    second = again(question)
    (row,) = world.settled(second)

    assert row["content"].endswith("Another answer.")
    (turn,) = world.rows("select * from agent_turns where id = %s", second)
    assert (turn["origin"], turn["parent_id"]) == ("again", question)
    (asked,) = world.rows(
        "select content from agent_messages where turn_id = %s and role = 'user'", turn["id"]
    )
    assert asked["content"] == "tell me a word"
    (card,) = [m for m in world.under(question) if m["message_id"] == row["message_id"]]
    assert markdown(card) == row["content"]
    assert "↪ tell me a word" in json.dumps(elements(card), ensure_ascii=False)
    assert "already used" in toast(click(world, "Alice", question, AGAIN))

    def inert() -> bool:
        found = [m for m in world.under(question) if m["message_id"] != row["message_id"]]
        return handles(found[0]) == ["👍", "👎"]

    eventually(inert, what="the first card has no Again any more")
    body = {"as": world.people["Alice"], "message_id": card["message_id"], "value": AGAIN}
    assert "On it" in world.platform.post("/click", **body)["toast"]["content"]
    (third,) = world.settled(again(second))
    assert third["content"].endswith("A third one.")

    world.platform.post("/recall", message_id=question, **{"as": world.people["Alice"]})
    gone = "select 1 from agent_messages where turn_id = any (%s)"
    turns = [question, second, again(second)]
    eventually(lambda: not world.rows(gone, turns), what="all answers are gone")


def test_again_pressed_many_times_answers_once(world: World) -> None:
    question, _ = world.ask("Alice", "hello")
    world.settled(question)
    world.bot.workers[-1].kill()
    with ThreadPoolExecutor(4) as hands:
        told = list(hands.map(lambda _: toast(click(world, "Alice", question, AGAIN)), range(4)))
    assert sum("On it" in one for one in told) == 1, told
    world.bot.start_worker()
    world.settled(again(question))
    later, _ = world.ask("Alice", "a later question")
    world.settled(later)
    assert len(world.under(question)) == 2


def test_again_asks_before_a_tool_changes_anything_once_more(world: World) -> None:
    call = {"tool_calls": [{"name": "create_note", "arguments": {"title": "Pasta"}}]}
    world.model.control("script", {"steps": [call, {"text": "Kept."}, call, {"text": "Shall I?"}]})
    question, _ = world.ask("Alice", "keep a note Pasta")
    world.settled(question)
    toast(click(world, "Alice", question, AGAIN))
    (row,) = world.settled(again(question))
    notes = world.rows("select 1 from agent_notes where chat_id = %s", world.group)
    assert len(notes) == 1, "the note was made twice without asking"
    assert "Shall I save the note “Pasta”?" in row["content"]


def test_a_pressed_follow_up_is_marked_and_its_answer_shows_it(world: World) -> None:
    suggest = {"name": "suggest_follow_ups", "arguments": {"questions": ["And then?", "Who?"]}}
    steps = [{"tool_calls": [suggest]}, {"text": "Here."}, {"text": "Later."}]
    world.model.control("script", {"steps": steps})
    question, said = world.ask("Alice", "what is up?")
    world.settled(question)
    (card,) = world.answers(question)
    value = buttons(card)[0]["behaviors"][0]["value"]
    assert "On it" in toast(click(world, "Bob", question, None, index=0))
    (row,) = world.settled(Origin("button", question, value["b"]).turn_id)

    def labels() -> list[tuple[str, bool]]:
        shown = next(m for m in world.under(question) if m["message_id"] == card["message_id"])
        assert markdown(shown) == said
        return [(b["text"]["content"], b.get("disabled", False)) for b in buttons(shown)]

    eventually(lambda: labels() == [("✓ And then?", True), ("Who?", False)], what="it is marked")
    answer = next(m for m in world.under(question) if m["message_id"] == row["message_id"])
    assert elements(answer)[0]["text"]["content"] == "↪ And then?"
    assert "And then?" not in row["content"]


def test_everything_about_me_looks_like_what_it_is(world: World) -> None:
    question, _ = world.ask("Alice", "/forget")
    world.settled(question)
    (card,) = world.answers(question)
    assert [b["type"] for b in buttons(card)] == ["default", "danger", "default"]


@pytest.mark.parametrize("value", [{"h": "all"}, {"h": 1}, {"h": "again", "x": 1}, {"h": None}])
def test_a_forged_handle_is_refused(world: World, value: object) -> None:
    question, _ = world.ask("Alice", "hello")
    world.settled(question)
    assert "no longer works" in toast(click(world, "Bob", question, value))


def test_a_card_whose_foot_is_refused_comes_without_it_and_keeps_its_words(world: World) -> None:
    world.platform.post("/faults", path_prefix="/open-apis/im/v1/messages", method="POST",
                        code=230099, times=1)  # fmt: skip
    question, said = world.ask("Alice", "hello **there**")
    (row,) = world.settled(question)
    assert row["content"] == said
    assert "**there**" in said
    (card,) = world.answers(question)
    assert handles(card) == []
