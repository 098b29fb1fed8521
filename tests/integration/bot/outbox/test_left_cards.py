"""Cards that nobody came back to, on a real database: kept, resumed, finished, once."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import psycopg
import pytest
import structlog

from bot.answering.unfinished_turns import finish_left_cards
from bot.feishu import cards
from bot.feishu.errors import FeishuError, Unreachable
from bot.outbox.texts import say_both
from bot.people.people_directory import People
from bot.services import Services
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import AccessDenied, StoreError, StoreUnavailable, TurnUnknown
from memory.rpc import Rpc
from memory.store import MemoryStore
from memory.tables.cards import CardStore, OpenCard
from tests.support.backends import Backend
from tests.support.card_platform import CardPlatform
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@dataclass
class _Settings:
    feishu_app_id: str = "cli_test"
    feishu_domain: str = ""


@dataclass
class Worker:
    """What the janitor works with; everything else of `Services` it must not touch."""

    rpc: Rpc
    store: MemoryStore
    feishu: CardPlatform
    people: People
    settings: _Settings = field(default_factory=_Settings)

    clock = staticmethod(time.time)

    async def finish(self) -> int:
        return await finish_left_cards(cast(Services, self), older_s=0, untouched_s=0)


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Worker]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    rpc, platform = PostgresRpc(pool), CardPlatform()
    yield Worker(rpc, MemoryStore(rpc), platform, People(platform))
    await pool.close()


async def opened(rpc: Rpc, group: Group, *, chat: str = "here") -> OpenCard:
    """A card of Alice's open turn, kept and not yet sent."""
    alice, turn_id = group.turn("alice", chat=chat), group.message(f"question_{chat}")
    await MemoryStore(rpc).begin_turn(alice, turn_id=turn_id, content="When?")
    return await CardStore(rpc).keep(
        alice, turn_id=turn_id, card_id="card_1", reply_to=turn_id, in_thread=True
    )


def rows(database_url: str, query: str) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query.encode()).fetchall()


async def test_each_attempt_gets_numbers_above_all_earlier_ones(backend: Backend) -> None:
    async with backend.rpc() as rpc:
        store, card = CardStore(rpc), await opened(rpc, Group())
        await store.mark_shown(card, "om_card")
        again = await store.resume(card.context, turn_id=card.turn_id)
        third = await store.resume(card.context, turn_id=card.turn_id)
        await store.mark_finished(card)

        assert again
        assert third
        assert card.numbers.start == 1
        assert card.numbers.stop <= again.numbers.start
        assert again.numbers.stop <= third.numbers.start
        assert len(third.numbers) >= 10 * 600, "ten operations a second for ten minutes"
        assert again.message_id == "om_card"
        assert again.context == card.context
        assert await store.resume(card.context, turn_id=card.turn_id) is None
        assert await store.take_left(older_s=86_400, untouched_s=0) == ()


@pytest.mark.parametrize("plain", [False, True])
async def test_nobody_goes_on_with_the_card_of_an_answer_that_is_delivered(
    worker: Worker, database_url: str, plain: bool
) -> None:
    card = await opened(worker.rpc, Group())
    await worker.store.record_reply(card.context, turn_id=card.turn_id, cards=["At three."])
    state, _ = await worker.store.mark_sent(
        card.context,
        turn_id=card.turn_id,
        chunk=0,
        content="At three.",
        message_id="om_card",
        plain=plain,
    )

    assert state == "sent"
    assert rows(database_url, "select streaming from agent_cards") == [(False,)]


@pytest.mark.parametrize(
    ("failure", "event"),
    [(StoreUnavailable("away"), "left_cards.memory_away"),
     (AccessDenied("no"), "left_cards.refused")],
)  # fmt: skip
async def test_only_a_memory_that_is_away_is_said_to_be(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, failure: StoreError, event: str
) -> None:
    async def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr(worker.rpc, "call", fails)
    with structlog.testing.capture_logs() as lines:
        assert await worker.finish() == 0

    assert [line["event"] for line in lines] == [event]


async def test_of_two_cards_for_one_turn_the_first_counts(worker: Worker) -> None:
    card = await opened(worker.rpc, Group())
    second = await CardStore(worker.rpc).keep(
        card.context, turn_id=card.turn_id, card_id="card_2", reply_to="om_x", in_thread=False
    )

    assert second.card_id == "card_1"
    assert second.numbers.start > card.numbers[-1]


async def test_a_turn_that_is_over_keeps_no_card(worker: Worker) -> None:
    card = await opened(worker.rpc, Group())
    await worker.store.record_reply(card.context, turn_id=card.turn_id, cards=["done"])

    with pytest.raises(TurnUnknown):
        await CardStore(worker.rpc).keep(
            card.context, turn_id=card.turn_id, card_id="x", reply_to="om_x", in_thread=False
        )


async def test_nobody_else_goes_on_with_a_card_and_only_the_service_takes_left_ones(
    worker: Worker,
) -> None:
    group = Group()
    card = await opened(worker.rpc, group)
    bob = group.turn("bob")

    assert await CardStore(worker.rpc).resume(bob, turn_id=card.turn_id) is None
    ages = {"p_older_s": 0, "p_untouched_s": 0, "p_limit": 1}
    with pytest.raises(AccessDenied):
        await worker.rpc.call("take_left_cards", ages, bob)


async def test_a_left_card_is_sent_if_need_be_and_says_honestly_that_there_is_no_answer(
    worker: Worker, database_url: str
) -> None:
    card = await opened(worker.rpc, Group())

    assert await worker.finish() == 1
    assert await worker.finish() == 0

    (reply,) = worker.feishu.named("reply")
    assert reply["uuid"] == cards.reply_uuid(card.turn_id, 0)
    (update,) = worker.feishu.named("update_card")
    assert update["card"]["body"]["elements"][0]["content"] == say_both("unfinished")
    assert rows(database_url, "select state from agent_turns") == [("sent",)]
    stored = "select content, status, message_id from agent_messages where role = 'assistant'"
    assert rows(database_url, stored) == [(say_both("unfinished"), "sent", "om_card")]


async def test_a_left_card_gets_the_stored_reply_and_the_other_cards_are_sent(
    worker: Worker, database_url: str
) -> None:
    card = await opened(worker.rpc, Group())
    await CardStore(worker.rpc).mark_shown(card, "om_card")
    await worker.store.record_reply(card.context, turn_id=card.turn_id, cards=["first", "second"])

    assert await worker.finish() == 1

    (update,) = worker.feishu.named("update_card")
    assert update["card"] == cards.answer_card("first", element_id=cards.answer_id(card.turn_id, 0))
    (reply,) = worker.feishu.named("reply")
    assert json.loads(reply["content"]) == cards.answer_card(
        "second", element_id=cards.answer_id(card.turn_id, 1)
    )
    assert rows(database_url, "select state from agent_turns") == [("sent",)]


async def test_in_place_of_a_card_that_had_to_be_withdrawn_another_is_sent(
    worker: Worker,
) -> None:
    card = await opened(worker.rpc, Group())
    await CardStore(worker.rpc).mark_shown(card, "om_card")
    worker.feishu.refuse("card_settings", FeishuError(200740))
    worker.feishu.refuse("patch_card", FeishuError(230054))

    assert await worker.finish() == 1

    assert worker.feishu.named("delete_message") == [{"message_id": "om_card"}]
    [reply] = worker.feishu.named("reply")
    assert reply["uuid"] != cards.reply_uuid(card.turn_id, 0), "Feishu would give the withdrawn one"


async def test_a_left_card_of_a_question_that_was_taken_back_is_withdrawn(worker: Worker) -> None:
    card = await opened(worker.rpc, Group())
    await CardStore(worker.rpc).mark_shown(card, "om_card")
    await worker.store.take_back(card.turn_id, card.context.chat_id)

    assert await worker.finish() == 1
    assert worker.feishu.names == ["delete_message"]


async def test_what_fails_now_is_tried_again_and_does_not_stop_the_others(worker: Worker) -> None:
    group = Group()
    await opened(worker.rpc, group)
    await opened(worker.rpc, group, chat="there")
    worker.feishu.refuse("update_card", Unreachable("HTTP 502"))

    assert await worker.finish() == 1
    assert await worker.finish() == 1
    assert await worker.finish() == 0


async def test_what_somebody_works_on_is_left_alone(worker: Worker) -> None:
    await opened(worker.rpc, Group())

    assert await finish_left_cards(cast(Services, worker), older_s=0, untouched_s=60) == 0
    assert await finish_left_cards(cast(Services, worker), older_s=480, untouched_s=0) == 0
