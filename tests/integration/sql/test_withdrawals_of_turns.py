"""A turn has only its own cards withdrawn, whichever card it names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

TENANT = "tenant"
GROUP, PRIVATE = "oc_group", "oc_private"
ALICE, BOB = "ou_alice", "ou_bob"


class World:
    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def call(self, chat: str, person: str, function: str, *arguments: object) -> object:
        """Calls a function with the token of a turn of `person` in `chat`."""
        kind = "p2p" if chat == PRIVATE else "group"
        claims = {
            "sub": person, "actor": person, "chat_id": chat, "chat_type": kind,
            "tenant_key": TENANT, "role": "authenticated",
        }  # fmt: skip
        with self.connection.transaction():
            self.connection.execute(
                "select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)]
            )
            self.connection.execute("set local role authenticated")
            places = ", ".join(["%s"] * len(arguments))
            found = self.connection.execute(f"select {function}({places})".encode(), arguments)
            return found.fetchone()[0]

    def open(self, chat: str, person: str, turn: str) -> list[str]:
        """Opens a turn; returns the arguments that name it in other calls."""
        thread = f"feishu:{chat}:{turn}"
        self.call(
            chat, person, "open_turn",
            turn, thread, chat, turn, person, person, "A", TENANT, "hello", 10,
        )  # fmt: skip
        return [turn, thread, person, person]

    def answer(self, chat: str, person: str, turn: str, card: str) -> None:
        who = self.open(chat, person, turn)
        self.call(chat, person, "record_reply", *who, '["an answer"]', "[]")
        self.call(chat, person, "mark_sent", *who, 0, "an answer", card)

    def cancel(self, chat: str, turn: str) -> None:
        """What a recall in Feishu does."""
        with self.connection.transaction():
            self.connection.execute("set local role service_role")
            self.connection.execute("select recall_message(%s, %s)", [turn, chat])

    def withdrawn(self) -> set[str]:
        """The cards that are to be withdrawn."""
        rows = self.connection.execute(
            "select message_id from agent_withdrawals where message_id not like 'of:%'"
        )
        return {card for (card,) in rows}


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield World(connection)


def test_a_turn_whose_question_was_taken_back_has_its_card_withdrawn(world: World) -> None:
    who = world.open(PRIVATE, ALICE, "om_1")
    world.cancel(PRIVATE, "om_1")

    state = world.call(PRIVATE, ALICE, "mark_sent", *who, 0, "an answer", "om_own_card")

    assert state == {"state": "cancelled"}
    assert world.withdrawn() == {"om_own_card"}


@pytest.mark.parametrize(
    ("chat", "person"),
    [(GROUP, BOB), (GROUP, ALICE), (PRIVATE, BOB)],
    ids=["in another chat", "one's own in another chat", "somebody else's here"],
)
def test_a_turn_has_no_stored_card_of_others_withdrawn(
    world: World, chat: str, person: str
) -> None:
    world.answer(chat, person, "om_theirs", "om_their_card")
    who = world.open(PRIVATE, ALICE, "om_1")
    world.cancel(PRIVATE, "om_1")

    world.call(PRIVATE, ALICE, "mark_sent", *who, 0, "an answer", "om_their_card")

    assert world.withdrawn() == set()


def test_a_turn_has_no_card_withdrawn_that_another_is_still_writing(world: World) -> None:
    theirs = world.open(GROUP, BOB, "om_theirs")
    world.call(GROUP, BOB, "keep_card", *theirs, "card_1", "om_theirs", True)
    world.call(GROUP, BOB, "note_card", *theirs, "om_their_card", True)
    who = world.open(PRIVATE, ALICE, "om_1")
    world.cancel(PRIVATE, "om_1")

    world.call(PRIVATE, ALICE, "mark_sent", *who, 0, "an answer", "om_their_card")

    assert world.withdrawn() == set()


def test_an_offer_without_a_question_withdraws_no_list_that_others_were_shown(
    world: World,
) -> None:
    world.answer(GROUP, BOB, "om_theirs", "om_their_answer")
    world.connection.execute(
        "update agent_turns set kept_cards = '{om_their_list}' where id = 'om_theirs'"
    )
    thread, who = f"feishu:{ALICE}:om_1", (ALICE, ALICE, TENANT)

    for card in ("om_their_list", "om_own_offer"):
        world.call(ALICE, ALICE, "keep_offer", thread, *who, "om_1", card)

    assert world.withdrawn() == {"om_own_offer"}


def test_a_token_adds_no_withdrawal_by_itself(world: World) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.call(PRIVATE, ALICE, "withdraw_later", ["om_x"], PRIVATE, TENANT)


def test_what_was_answered_elsewhere_withdraws_a_card_of_its_own_chat_only(world: World) -> None:
    """A turn that was answered while the memory was away names its chat and its cards itself."""
    world.cancel(PRIVATE, "om_1")
    cards = [{"chunk": 0, "content": "an answer", "status": "sent", "message_id": "om_card"}]

    for chat, withdrawn in ((GROUP, set()), (PRIVATE, {"om_card"})):
        state = world.call(
            PRIVATE, ALICE, "restore_turn", "om_1", f"feishu:{PRIVATE}:om_1", chat, "om_1",
            ALICE, ALICE, "A", TENANT, "hello", json.dumps(cards), "[]", None,
            "2026-03-01T00:00:00Z", None,
        )  # fmt: skip
        assert state == {"state": "cancelled"}
        assert world.withdrawn() == withdrawn
