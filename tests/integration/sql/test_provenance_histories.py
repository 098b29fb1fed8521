"""Histories that the random ones do not hold.

Corrected notes, a file that two people read in two kinds of chat, and digests of digests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import psycopg
import pytest

from tests.support.provenance import History, Item


class Told(History):
    """A history that is told step by step."""

    def say_in(self, chat: str, person: str, said: str = "") -> tuple[Item, dict[str, str]]:
        item = Item(f"om_{len(self.items)}_{self.mark}", chat, "main", person)
        return item, self.begin(item, said or "Is Tuesday afternoon fine?")

    def ask_in(
        self, chat: str, person: str, answer: Sequence[str], *, said: str = "",
        given: Sequence[str] = (), reads: dict[str, str] | None = None,
    ) -> Item:  # fmt: skip
        """`reads`: the texts that came with other messages, and under "" with the question."""
        item, who = self.say_in(chat, person, said)
        if reads is not None:
            texts = {one or item.id: text for one, text in reads.items()}
            assert self.call("note_read_messages", {
                **who, "p_messages": json.dumps([one for one in reads if one]),
                "p_texts": json.dumps(texts),
            })  # fmt: skip
        item.told = frozenset(answer)
        self.finish(item, who, given)
        return item

    def digest_in(self, chat: str, person: str, answer: str, sources: Sequence[str]) -> Item:
        item, who = self.say_in(chat, person, "/digest")
        self.call("keep_digest_sources", {
            "p_turn_id": item.id, "p_chat_id": self.chat_id(item), "p_tenant_key": "t",
            "p_sources": json.dumps([{"message_id": one, "author_id": ""} for one in sources]),
        })  # fmt: skip
        item.told = frozenset([answer])
        self.finish(item, who, [])
        return item

    def note_in(
        self, chat: str, person: str, text: str, *, given: Sequence[str] = (), reads: str = ""
    ) -> Item:
        """Keeps a note, or corrects the one there is. `reads`: a file, in everyday words."""
        item, who = self.say_in(chat, person)
        if reads:
            texts = json.dumps({reads: "Thanks everybody, sounds good!"})
            self.call("note_read_messages", {
                **who, "p_messages": json.dumps([reads]), "p_texts": texts,
            })  # fmt: skip
        identity = {one: who[one] for one in ("p_conversation_id", "p_user_id", "p_actor_id")}
        place = {**identity, "p_chat_id": self.chat_id(item), "p_tenant_key": "t",
                 "p_turn_id": item.id}  # fmt: skip
        note = f"note_{self.mark}"
        if self.notes():
            self.call("update_note", {
                **place, "p_note_id": note, "p_title": None, "p_body": text, "p_add_tags": "[]",
                "p_remove_tags": "[]",
            })  # fmt: skip
        else:
            self.call("create_note", {
                **place, "p_note_id": note, "p_title": "list", "p_body": text, "p_tags": "[]",
            })  # fmt: skip
        self.finish(item, who, given)
        return item

    def notes(self) -> list[str]:
        return [body for (body,) in self.database.execute("select body from agent_notes")]

    def recall(self, source: str, chat: str) -> None:
        self.call("recall_message", {"p_message_id": source, "p_chat_id": chat})

    def answered(self, *items: Item) -> list[bool]:
        """Whether each still has its answer."""
        rows = self.rows("select turn_id from agent_messages where role = 'assistant'")
        return [item.id in rows for item in items]


@pytest.fixture
def told(connection: psycopg.Connection) -> Told:
    return Told(connection, random.Random(1), "h")


@pytest.mark.parametrize(
    ("bodies", "left"),
    [
        (["the door opens at nine", "the code is calathea"], ["the door opens at nine"]),
        (["the code is calathea", "the door opens at nine"], ["the door opens at nine"]),
        (["calathea", "the door opens at nine", "ask for calathea"], ["the door opens at nine"]),
        (["calathea", "calathea again"], []),
    ],
)
def test_of_a_note_that_was_corrected_only_what_tells_it_goes(
    told: Told, bodies: list[str], left: list[str]
) -> None:
    source = told.ask_in("red", "ann", ["noted"], said="The code is calathea")
    for body in bodies:
        told.note_in("red", "bob", body, given=[source.id])

    told.recall(source.id, told.chat_id(source))

    assert told.notes() == left
    assert not [was for was in told.rows("select was from agent_note_changes") if "calathea" in was]


def test_a_file_that_two_people_quote_goes_from_both_places_and_no_other_file_does(
    told: Told,
) -> None:
    """In a group and alone with the bot, at second hand across them; nor does a forward go that
    says the same."""
    file, other = "om_file_h", "om_other_h"
    text = {file: "The supplier is calathea", other: "The supplier delivers on Tuesday"}
    alone = told.ask_in("p2p", "bob", ["calathea"], reads={file: text[file]})
    group = told.ask_in("red", "cid", ["calathea"], reads={file: text[file], other: text[other]})
    again = told.ask_in("p2p", "bob", ["calathea"], given=[group.card])
    third = told.ask_in("tan", "ann", ["calathea"], given=[again.card, alone.id])
    forwarded = told.ask_in("p2p", "bob", ["calathea"], reads={"": "A: B: the one is calathea"})
    bystander = told.ask_in("red", "cid", ["Tuesday"], reads={other: text[other]}, given=[group.id])

    told.recall(file, "oc_red_h")

    assert told.answered(alone, group, again, third, forwarded, bystander) == [
        False, False, False, False, True, True,
    ]  # fmt: skip
    told.recall(forwarded.id, told.chat_id(forwarded))
    assert told.answered(forwarded, bystander) == [False, True]


def test_a_digest_of_a_digest_goes_and_so_does_what_was_told_of_it_alone(told: Told) -> None:
    source = told.ask_in("red", "ann", ["noted"], said="The code is calathea")
    talk = told.ask_in("red", "bob", ["noted"], said="The door opens at nine")
    first = told.digest_in("red", "cid", "calathea", [source.id, talk.id])
    weekly = told.digest_in("red", "cid", "The door opens at nine", [first.card])
    alone = told.ask_in("p2p", "bob", ["calathea"], given=[first.card])
    quiet = told.ask_in("p2p", "bob", ["nine"], given=[first.card, talk.id])

    told.recall(source.id, told.chat_id(source))

    assert told.answered(first, weekly, alone) == [False, False, False]
    assert told.answered(talk, quiet) == [True, True]


def test_an_answer_that_was_begun_before_its_source_was_said_goes_with_it(told: Told) -> None:
    """One that is made again after a while is given what was said meanwhile."""
    late, who = told.say_in("red", "bob")
    source = told.ask_in("red", "ann", ["noted"], said="The code is calathea")
    late.told = frozenset(["calathea"])
    told.finish(late, who, [source.id])

    told.recall(source.id, told.chat_id(source))

    assert told.answered(late) == [False]


def test_what_an_answer_had_from_elsewhere_is_not_its_files_when_that_is_gone(told: Told) -> None:
    file, other = "om_file_h", "om_other_h"
    source = told.ask_in("red", "ann", ["noted"], said="The code is calathea")
    first = told.ask_in("red", "bob", ["calathea"], reads={other: "OK"}, given=[source.id])
    told.ask_in("tan", "cid", ["calathea"], reads={file: "OK"}, given=[first.card])
    noted = told.note_in("tan", "ann", "calathea", given=[source.id], reads=file)
    bystander = told.ask_in("tan", "bob", ["calathea"], given=[noted.id])

    told.recall(other, "oc_red_h")
    told.recall(file, "oc_tan_h")

    assert told.answered(first, noted, bystander) == [False, False, True]
