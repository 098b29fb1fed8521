"""Stored replies are sent once and as they are stored, also when their jobs are gone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from zoneinfo import ZoneInfo

import psycopg
import pytest

from bot.answering.unfinished_turns import send_pending_replies
from bot.feishu import cards
from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.models import RawMessage, SentMessage
from bot.outbox.delivery import Target
from bot.outbox.finding import OutcomeUnknown
from bot.outbox.sending import After, Outcome, Outgoing, send
from bot.people.people_directory import People
from bot.process.concurrency import cancel_tasks
from bot.queue.consumer import Lease
from bot.queue.table import JobTable
from bot.services import Services
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import Origin
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import CardStore, NewButton
from tests.support.card_platform import CardPlatform
from tests.support.exchanges import deliver
from tests.support.people import Group
from tests.support.queue import enqueue, idle_presence, rows

pytestmark = pytest.mark.anyio

APP = "cli_test"


class Chat(CardPlatform):
    """A platform whose thread can be read, or refuses that."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[RawMessage] = []
        self.refuses: FeishuError | None = None

    async def get_message(
        self, message_id: str, user_card_content: bool = False
    ) -> list[RawMessage]:
        return []

    async def send(self, receive_id: str, receive_id_type: str, **call: Any) -> SentMessage:
        await self._call("send", receive_id=receive_id, receive_id_type=receive_id_type, **call)
        return SentMessage("om_card")

    async def list_messages(self, *_: Any, **__: Any) -> list[RawMessage]:
        if self.refuses:
            raise self.refuses
        return self.said

    def shows(self, turn_id: str, text: str, *, sender: str = APP, deleted: bool = False) -> None:
        card = cards.answer_card(text, element_id=cards.answer_id(turn_id, 0))
        self.said.append(
            RawMessage("om_there", "", "", "", "oc", "interactive", sender, "app_id", "app", 0,
                       deleted, cards.card_content({"user_dsl": json.dumps(card)}), ())
        )  # fmt: skip


@dataclass
class _Settings:
    feishu_app_id: str = APP
    feishu_domain: str = ""
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))


@dataclass
class Worker:
    """What the sweeper works with; everything else of `Services` it must not touch."""

    rpc: Rpc
    store: MemoryStore
    feishu: Chat
    people: People
    table: JobTable
    url: str
    settings: _Settings = field(default_factory=_Settings)
    contexts: dict[str, AgentMemoryContext] = field(default_factory=dict)

    clock = staticmethod(time.time)
    now = Services.now
    at = Services.at

    async def sweep(self) -> int:
        return await send_pending_replies(cast(Services, self), self.table, older_s=600)

    async def pending(
        self, *texts: str, minutes: int, place: AgentMemoryContext | None = None
    ) -> str:
        """A reply of these cards that was stored so long ago; by default to Alice, in a thread."""
        group = Group()
        alice, turn_id = place or group.turn("alice", chat="here"), group.message("q")
        self.contexts[turn_id] = alice
        await self.store.begin_turn(alice, turn_id=turn_id, content="When?")
        await self.store.record_reply(alice, turn_id=turn_id, cards=texts or ["Answer"])
        self.age(turn_id, minutes=minutes)
        return turn_id

    def age(self, turn_id: str, *, minutes: int) -> None:
        """Nothing has happened to the turn for so long."""
        self.rows(
            "update agent_turns set updated_at = now() - make_interval(mins => %s),"
            " created_at = now() - make_interval(mins => %s) where id = %s returning 1",
            minutes, minutes, turn_id,
        )  # fmt: skip

    async def send(self, turn_id: str, *, maybe_sent_ms: int = 0, **options: Any) -> Outcome:
        """Sends what is pending of the reply, as its job does."""
        context = self.contexts[turn_id]
        turn = await self.store.begin_turn(context, turn_id=turn_id, content="When?")
        target = Target(turn_id, context.chat_id, in_thread=True)
        out = Outgoing(context, turn_id, turn.reply, target, {}, since_ms=maybe_sent_ms)
        return await send(cast(Services, self), out, **options)

    def rows(self, query: str, *params: object) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query.encode(), params).fetchall()

    def stored(self, turn_id: str) -> tuple[str, str, str]:
        [row] = self.rows(
            "select status, content, message_id from agent_messages"
            " where turn_id = %s and role = 'assistant'",
            turn_id,
        )
        return cast(tuple[str, str, str], row)


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Worker]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    rpc, chat = PostgresRpc(pool), Chat()
    yield Worker(rpc, MemoryStore(rpc), chat, People(chat), JobTable(pool), database_url)
    await pool.close()


async def test_what_no_job_will_send_is_sent_once_with_the_uuid_of_its_turn(worker: Worker) -> None:
    turn_id = await worker.pending(minutes=20)

    assert await worker.sweep() == 1
    assert await worker.sweep() == 0

    [call] = worker.feishu.named("reply")
    assert call["uuid"] == cards.reply_uuid(turn_id, 0)
    assert worker.stored(turn_id) == ("sent", "Answer", "om_card")


async def test_what_is_young_or_has_a_job_is_left_alone(worker: Worker) -> None:
    await worker.pending(minutes=5)
    with_job = await worker.pending(minutes=20)
    worker.rows(
        "select feishu_bot.enqueue('k', 'feishu.event', null, %s::jsonb)",
        json.dumps({"payload": {"event": {"message": {"message_id": with_job}}}}),
    )

    assert await worker.sweep() == 0
    assert not worker.feishu.calls


async def test_a_reply_whose_card_is_still_being_written_is_left_to_that(worker: Worker) -> None:
    group = Group()
    alice, turn_id = group.turn("alice"), group.message("q")
    await worker.store.begin_turn(alice, turn_id=turn_id, content="When?")
    await CardStore(worker.rpc).keep(
        alice, turn_id=turn_id, card_id="card_1", reply_to=turn_id, in_thread=True
    )
    await worker.store.record_reply(alice, turn_id=turn_id, cards=["Answer"])
    worker.age(turn_id, minutes=20)

    assert await worker.sweep() == 0
    assert not worker.feishu.calls


async def test_after_an_hour_it_is_looked_for_in_the_chat_first(worker: Worker) -> None:
    there, missing = await worker.pending(minutes=70), await worker.pending(minutes=70)
    worker.feishu.shows(there, "Answer")

    assert await worker.sweep() == 2

    [call] = worker.feishu.named("reply")
    assert call["uuid"] == cards.reply_uuid(missing, 0)
    assert worker.stored(there) == ("sent", "Answer", "om_there")
    status, content, _ = worker.stored(missing)
    assert status == "sent"
    assert content.startswith("> Sorry for the late reply. This answers “When?”")
    assert json.dumps(content, ensure_ascii=False) in call["content"]


async def test_where_the_chat_cannot_be_read_it_is_reported_and_not_sent(worker: Worker) -> None:
    turn_id = await worker.pending(minutes=70)
    worker.feishu.refuses = FeishuError(99991672)

    assert await worker.sweep() == 0

    assert not worker.feishu.named("reply")
    assert worker.stored(turn_id)[0] == "failed"


@pytest.mark.parametrize(
    ("failure", "status"),
    [(Unreachable("away"), "pending"), (FeishuError(230020), "pending"),
     (FeishuError(230002), "failed"), (FeishuError(230011), "failed")],
)  # fmt: skip
async def test_what_may_pass_waits_and_what_is_terminal_ends(
    worker: Worker, failure: Exception, status: str
) -> None:
    turn_id = await worker.pending(minutes=20)
    worker.feishu.refuse("reply", cast(FeishuError, failure))

    assert await worker.sweep() == 0
    assert worker.stored(turn_id)[0] == status


async def test_what_one_person_is_shown_beside_a_group_goes_to_their_p2p_chat(
    worker: Worker,
) -> None:
    group = Group()
    p2p, listed = group.p2p(), Origin("private_answer", group.message("asks"))
    button = NewButton("Forget it", "confirm", {"beside": group.chat()}, "p2p", 3600)
    await worker.store.begin_turn(p2p, turn_id=listed.turn_id, content="/memory", origin=listed)
    await worker.store.record_reply(p2p, turn_id=listed.turn_id, cards=["Facts"], buttons=[button])
    await deliver(worker.store, p2p, listed.turn_id, ["Facts"])
    below = Origin("button", listed.turn_id, button.id)
    await worker.store.begin_turn(p2p, turn_id=below.turn_id, content="Forget it", origin=below)
    await worker.store.record_reply(p2p, turn_id=below.turn_id, cards=["Forgotten"])
    worker.rows(
        "update agent_turns set updated_at = now() - interval '20 minutes' where id = %s"
        " returning 1",
        below.turn_id,
    )

    assert await worker.sweep() == 1

    assert not worker.feishu.named("reply"), "the card that was pressed stands in the group"
    [call] = worker.feishu.named("send")
    assert (call["receive_id"], call["receive_id_type"]) == (p2p.chat_id, "chat_id")
    assert worker.stored(below.turn_id)[:2] == ("sent", "Forgotten")


@pytest.mark.parametrize("other", [{"sender": "cli_other"}, {"deleted": True}])
async def test_what_another_app_sent_or_is_deleted_is_not_taken_for_the_answer(
    worker: Worker, other: dict[str, Any]
) -> None:
    turn_id = await worker.pending(minutes=70)
    worker.feishu.shows(turn_id, "Answer", **other)

    assert await worker.sweep() == 1

    assert len(worker.feishu.named("reply")) == 1
    assert worker.stored(turn_id)[2] == "om_card"


async def test_one_card_of_a_reply_is_not_taken_for_another(worker: Worker) -> None:
    turn_id = await worker.pending("Answer", "More", minutes=70)
    worker.feishu.shows(turn_id, "Answer")

    assert await worker.sweep() == 1

    [call] = worker.feishu.named("reply")
    assert call["uuid"] == cards.reply_uuid(turn_id, 1)


async def test_a_late_answer_is_stored_with_its_note_before_it_is_sent(worker: Worker) -> None:
    turn_id = await worker.pending(minutes=70)
    worker.feishu.refuse("reply", Unreachable("away"))

    assert await worker.sweep() == 0

    status, content, _ = worker.stored(turn_id)
    assert status == "pending"
    assert content.startswith("> Sorry for the late reply.")


async def test_of_several_cards_only_those_that_are_missing_are_sent(worker: Worker) -> None:
    turn_id = await worker.pending("One", "Two", minutes=20)
    worker.feishu.refuse("reply", None, Unreachable("away"))
    assert await worker.sweep() == 0
    worker.age(turn_id, minutes=20)

    assert await worker.sweep() == 1

    uuids = [call["uuid"] for call in worker.feishu.named("reply")]
    assert uuids == [cards.reply_uuid(turn_id, chunk) for chunk in (0, 1, 1)]


async def test_when_the_question_is_taken_back_no_further_card_is_sent(worker: Worker) -> None:
    turn_id = await worker.pending("One", "Two", minutes=5)
    gate = worker.feishu.gates["reply"] = asyncio.Event()
    sending = asyncio.create_task(worker.send(turn_id))
    await worker.feishu.until(lambda: bool(worker.feishu.named("reply")))
    await worker.store.take_back(turn_id, worker.contexts[turn_id].chat_id)
    gate.set()

    assert (await sending).state == "cancelled"
    assert len(worker.feishu.named("reply")) == 1


async def test_a_job_ends_with_the_last_card_and_not_before(worker: Worker) -> None:
    turn_id = await worker.pending("One", "Two", minutes=5)
    worker.feishu.refuse("reply", None, Unreachable("away"))

    async with leased(worker) as lease:
        with pytest.raises(Unreachable):
            await worker.send(turn_id, lease=lease, after=After(lease, lambda: None))
        assert await rows(worker.url) == ["running"]
        await worker.send(turn_id, lease=lease, after=After(lease, lambda: None))
        assert await rows(worker.url) == []


async def test_a_send_that_is_cut_off_leaves_the_lease_unsure(worker: Worker) -> None:
    turn_id = await worker.pending(minutes=5)
    worker.feishu.gates["reply"] = asyncio.Event()

    async with leased(worker) as lease:
        sending = asyncio.create_task(worker.send(turn_id, lease=lease))
        await worker.feishu.until(lambda: bool(worker.feishu.named("reply")))
        await cancel_tasks([sending])
        assert lease.unsure


async def test_what_may_have_been_sent_stays_with_its_job_for_an_operator(worker: Worker) -> None:
    turn_id = await worker.pending(minutes=70)
    worker.feishu.refuses = FeishuError(99991672)

    with pytest.raises(OutcomeUnknown):
        await worker.send(turn_id, maybe_sent_ms=1)

    assert worker.stored(turn_id)[0] == "pending"
    assert not worker.feishu.named("reply")


async def test_what_earlier_versions_kept_for_one_person_is_not_answered_in_the_group(
    worker: Worker,
) -> None:
    place = Group().former_place()
    await worker.pending(minutes=20, place=place)

    assert await worker.sweep() == 1

    assert not worker.feishu.named("reply")
    [call] = worker.feishu.named("send")
    assert (call["receive_id"], call["receive_id_type"]) == (place.actor_id, "open_id")


@asynccontextmanager
async def leased(worker: Worker) -> AsyncIterator[Lease]:
    """A job that runs, and whose worker is this test."""
    presence = idle_presence(worker.url)
    await presence.begin()
    await enqueue(worker.url, "m")
    [job] = await worker.table.take(presence.worker, 1)
    yield Lease(job, presence.worker, lambda _: None)
    await presence.end()
