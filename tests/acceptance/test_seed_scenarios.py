"""“That note”, “the first note”: the seed scenarios through the real processes.

Each runs with a scripted model, whose rules find every id in its prompt and nowhere else
(`tests/data/playbooks/notes.json`), and with the offline model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import World, markdown, prompt_of
from tests.support import profiles

PLAYBOOK = Path(__file__).parents[1] / "data" / "playbooks" / "notes.json"
FURTHER_TURNS = 30
LASAGNA = ("italian", "dinner")


@pytest.fixture(scope="module", params=["scripted", "offline"])
def brain(request: pytest.FixtureRequest) -> str:
    """Which model answers."""
    return str(request.param)


@pytest.fixture(scope="module")
def bot_options(brain: str) -> dict[str, str]:
    return profiles.OFFLINE if brain == "offline" else {}


@dataclass
class Thread:
    """What Alice says to the bot under one message of hers."""

    world: World
    brain: str
    root: str = ""

    def ask(self, text: str) -> str:
        """The answer's text; it is stored exactly as its card shows it."""
        question, shown = self.world.ask("Alice", text, **self._here())
        self.root = self.root or question
        [row] = self.world.settled(question)
        assert row["content"] == shown
        assert "offline model" not in shown
        return shown

    def chat(self, turns: int) -> None:
        """So many further turns about something else."""
        said = [
            self.world.say(
                "Alice", f"@{self.world.bot_name} Thing number {n} happened", **self._here()
            )
            for n in range(turns)
        ]
        for question in said:
            self.world.settled(question, within_s=90)

    def notes(self) -> dict[str, tuple[str, ...]]:
        """Title → tags of the notes of this thread, as stored, in order of creation."""
        rows = self.world.rows(
            "select n.title, n.tags, n.user_id from agent_notes n"
            " join agent_note_uses u on u.note_id = n.id where u.conversation_id = %s"
            " order by u.ordinal",
            f"feishu:{self.world.group}:{self.root}",
        )
        assert {row["user_id"] for row in rows} <= {self.world.people["Alice"]}
        return {row["title"].lower(): tuple(row["tags"]) for row in rows}

    def _here(self) -> dict[str, str]:
        return {"root_id": self.root} if self.root else {}


@pytest.fixture
def thread(world: World, brain: str) -> Thread:
    world.model.control("script", json.loads(PLAYBOOK.read_text(encoding="utf-8")))
    return Thread(world, brain)


def test_that_note_is_the_note_just_created(thread: Thread) -> None:
    thread.ask("create a note about pasta with tags italian, dinner")

    answer = thread.ask("add the tag 'dining' to that note")

    assert thread.notes() == {"pasta": ("italian", "dinner", "dining")}
    assert "pasta" in answer.lower()


def test_the_first_note_is_the_one_created_first(thread: Thread) -> None:
    thread.ask("create a note about pizza with tags italian, party")
    thread.ask("create a note about lasagna with tags italian, dinner")

    answer = thread.ask("remove the italian tag from the first note")

    assert thread.notes() == {"pizza": ("party",), "lasagna": ("italian", "dinner")}
    assert "pizza" in answer.lower()


def test_removing_one_tag_keeps_the_rest(thread: Thread) -> None:
    thread.ask("create a note about pasta with tags italian, dinner, quick")

    thread.ask("remove the dinner tag from that note")

    assert thread.notes() == {"pasta": ("italian", "quick")}


def test_of_two_notes_the_most_recent_is_taken_and_the_answer_says_which(thread: Thread) -> None:
    thread.ask("create a note about salad with tags green, light")
    thread.ask("create a note about burger with tags beef, lunch")

    answer = thread.ask("update that note to add tag 'fast-food'")

    assert thread.notes()["burger"] == ("beef", "lunch", "fast-food")
    assert thread.notes()["salad"] == ("green", "light")
    assert "burger" in answer.lower()


def test_notes_are_known_after_thirty_further_turns_and_after_a_restart(thread: Thread) -> None:
    thread.ask("create a note about pizza with tags italian, party, cheap")
    thread.ask("create a note about lasagna with tags italian, dinner")
    thread.chat(FURTHER_TURNS)
    thread.world.model.forget()

    assert "pizza" in thread.ask("remove the italian tag from the first note").lower()
    assert "pizza" in thread.ask("add the tag 'dining' to that note").lower()
    assert thread.notes() == {"pizza": ("party", "cheap", "dining"), "lasagna": LASAGNA}
    assert_no_message_held_an_id(thread.world.model.requests()[:1])

    restart(thread.world)
    thread.world.model.forget()
    assert "pizza" in thread.ask("remove the cheap tag from the first note").lower()
    assert "pizza" in thread.ask("update that note to add tag 'fast-food'").lower()
    assert thread.notes() == {"pizza": ("party", "dining", "fast-food"), "lasagna": LASAGNA}


def assert_no_message_held_an_id(requests: list[dict[str, Any]]) -> None:
    """Only the registry could say which note it is."""
    for request in requests:
        said = [text for role, text in prompt_of(request) if role != "system"]
        assert said
        assert "note_" not in "\n".join(said)
        assert any("note_" in text for role, text in prompt_of(request) if role == "system")


def restart(world: World) -> None:
    world.bot.stop()
    world.bot.start_web()
    world.bot.start_worker()


def test_the_calls_of_a_turn_are_stored_beside_the_text_of_the_card(thread: Thread) -> None:
    shown = thread.ask("create a note about pasta with tags italian, dinner")
    [row] = thread.world.stored(thread.root)

    [call] = row["tool_calls"]
    assert call["name"] == "create_note"
    assert call["arguments"]["title"].lower() == "pasta"
    assert call["arguments"]["tags"] == ["italian", "dinner"]
    assert call["result"].startswith("Successfully created note")
    assert (call["ok"], type(call["ms"])) == (True, int)
    assert row["content"] == shown
    assert "note_" not in shown


@pytest.mark.parametrize("brain", ["scripted"], indirect=True)
def test_recent_calls_are_given_to_the_model_as_calls_and_older_ones_as_context(
    thread: Thread,
) -> None:
    for title in ("pasta", "pizza", "salad", "soup"):
        thread.ask(f"create a note about {title} with tags italian, dinner")
    thread.world.model.forget()
    thread.ask("and what else?")

    [request] = thread.world.model.requests()
    messages = request["body"]["messages"][1:]
    rows = thread.world.rows(
        "select id from agent_notes where chat_id = %s order by created_at", thread.world.group
    )
    oldest, *recent = [row["id"] for row in rows]
    assert [one["role"] for one in messages[:2]] == ["user", "assistant"]
    assert "[Tool context" in messages[1]["content"]
    assert f"References: {oldest}" in messages[1]["content"]
    calls = [call for one in messages for call in one.get("tool_calls", ())]
    results = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    assert [call["function"]["name"] for call in calls] == ["create_note"] * 3
    for call, note in zip(calls, recent, strict=True):
        assert f"References: {note}" in results[call["id"]]
    for row in thread.world.stored(thread.root):
        assert "Tool context" not in row["content"]


@pytest.mark.parametrize("brain", ["scripted"], indirect=True)
def test_of_two_notes_that_fit_alike_the_bot_asks_which_and_two_clicks_do_it(
    thread: Thread,
) -> None:
    thread.ask("create a note about Pasta carbonara with tags egg, dinner")
    thread.ask("create a note about Pasta pesto with tags basil, dinner")
    question, text = thread.world.ask(
        "Alice", "add the tag 'quick' to the pasta note", root_id=thread.root
    )
    [row] = thread.world.settled(question)
    offered = ["Put 'quick' on Pasta carbonara", "Put 'quick' on Pasta pesto"]
    [card] = thread.world.answers(question)
    assert [button["text"]["content"] for button in buttons(card)] == offered
    assert row["content"] == text
    assert not [one for one in offered if one in text]
    untouched = thread.notes()

    by_bob = pressed(thread.world, "Bob", card, 1)
    assert "no note" in by_bob["content"], "Bob's own memory has no such note"
    assert thread.notes() == untouched

    by_alice = pressed(thread.world, "Alice", card, 0)
    assert "Shall I change the note “Pasta carbonara”?" in by_alice["content"]
    assert thread.notes() == untouched, "a model wrote the question: nothing changes unconfirmed"
    [asking] = thread.world.answers(by_alice["turn_id"])
    done = pressed(thread.world, "Alice", asking, 0)
    assert "I updated the note “Pasta carbonara”: added the tag “quick”." in done["content"]
    assert thread.notes()["pasta carbonara"] == ("egg", "dinner", "quick")
    assert thread.notes()["pasta pesto"] == ("basil", "dinner")


def pressed(world: World, who: str, card: dict[str, Any], place: int) -> dict[str, Any]:
    """The row of the answer to a press of the button at `place`, which is what its card shows."""
    world.platform.post(
        "/click", **{"as": world.people[who], "message_id": card["message_id"], "index": place}
    )
    asked = world.turn_of(buttons(card)[place]["behaviors"][0]["value"]["b"])
    [row] = world.settled(asked)
    [shown] = world.answers(asked)
    assert row["content"] == markdown(shown)
    return row


def buttons(card: dict[str, Any]) -> list[dict[str, Any]]:
    body = card["card"] or json.loads(card["content"])
    return [element for element in body["body"]["elements"] if element["tag"] == "button"]
