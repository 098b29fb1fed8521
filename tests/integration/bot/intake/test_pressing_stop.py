"""Stop at the edge: the press is kept, then the workers are told; the toast says what is true."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from bot.feishu.events import CARD_ACTION
from bot.intake.acceptance import Intake, Presses
from bot.outbox.buttons import toast
from bot.queue.inbox import Inbox, QueueUnavailable
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.rpc import Rpc
from memory.store import MemoryStore
from memory.tables.cards import CardStore, new_button_id
from tests.support.people import Group

pytestmark = pytest.mark.anyio


class Workers(Inbox):
    """The way to workers that end the turn at once, or that cannot be told."""

    def __init__(self, url: str, *, told: bool = True) -> None:
        super().__init__(url)
        self._url, self._told = url, told

    def stop_turn(self, turn_id: str) -> None:
        if not self._told:
            raise QueueUnavailable("gone")
        super().stop_turn(turn_id)
        with psycopg.connect(self._url) as connection:
            connection.execute("update agent_turns set state = 'sent' where id = %s", [turn_id])


@dataclass
class Written:
    """An answer to Alice that is being written, and its button."""

    url: str
    presses: Presses
    group: Group = field(default_factory=Group)
    turn: str = field(default_factory=lambda: f"om_{new_button_id()}")
    stop_id: str = field(default_factory=new_button_id)

    async def begin(self, rpc: Rpc) -> None:
        alice = self.group.turn("alice")
        await MemoryStore(rpc).begin_turn(alice, turn_id=self.turn, content="Q")
        await CardStore(rpc).keep(
            alice, turn_id=self.turn, card_id="card", reply_to=self.turn, in_thread=True,
            stop_id=self.stop_id,
        )  # fmt: skip

    async def pressed(self, *, told: bool = True) -> dict[str, Any]:
        """What Alice is shown; not `told`: the workers cannot be."""
        alice, event_id = self.group.turn("alice"), new_button_id()
        payload = {
            "schema": "2.0",
            "header": {
                "event_id": event_id, "event_type": CARD_ACTION, "tenant_key": alice.tenant_key,
            },
            "event": {
                "operator": {"open_id": alice.actor_id, "tenant_key": alice.tenant_key},
                "action": {"tag": "button", "value": {"b": self.stop_id}},
                "context": {"open_message_id": "om_card", "open_chat_id": alice.chat_id},
            },
        }  # fmt: skip
        inbox = Workers(self.url, told=told)
        accepted = await asyncio.to_thread(Intake(inbox, self.presses).accept, payload)
        inbox.close()
        return accepted.answer

    def is_stopped(self) -> bool:
        with psycopg.connect(self.url) as connection:
            [found] = connection.execute("select feishu_bot.is_stopped(%s)", [self.turn]).fetchall()
        return bool(found[0])


@pytest.fixture
async def written(database_url: str) -> AsyncIterator[Written]:
    async def connect() -> Rpc:
        pool = connection_pool(database_url, size=2)
        await pool.open()
        return PostgresRpc(pool)

    answer = Written(database_url, Presses(connect, limit_s=10))
    rpc = await connect()
    await answer.begin(rpc)
    await rpc.close()
    yield answer
    await asyncio.to_thread(answer.presses.close)


async def test_who_stops_an_answer_is_not_told_that_it_was_over(written: Written) -> None:
    assert await written.pressed() == toast("stopping")
    assert written.is_stopped()
    assert await written.pressed() == toast("over")


async def test_a_press_that_no_worker_heard_of_is_told_by_the_next(written: Written) -> None:
    assert await written.pressed(told=False) == toast("away")
    assert not written.is_stopped()
    assert await written.pressed() == toast("stopped")
    assert written.is_stopped()
