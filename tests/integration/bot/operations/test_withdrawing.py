"""A card is withdrawn in the chat of what was taken back, whatever a turn said it had sent."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from bot.feishu import cards
from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.events import RetractedMessage
from bot.feishu.models import RawMessage, SentMessage
from bot.feishu.other_events import CommentPlace
from bot.listening.transcript import HeldTranscript, HeldTranscripts
from bot.outbox.retractions import handle_retraction, withdraw_card, withdraw_cards
from bot.queue.inbox import Inbox
from bot.queue.operator_actions import QueueOperations
from bot.services import Services
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.receipts import ReceiptStore
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from tests.support.people import Group

pytestmark = pytest.mark.anyio
_APP = "cli_test"
ASKED = "When do we harvest the plums?"


@dataclass
class Platform:
    """Messages of ours, each with the chat in which it stands."""

    chats: dict[str, str] = field(default_factory=dict)
    is_readable: bool = True
    answers: list[RawMessage] = field(default_factory=list)
    of_one: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    refusal: FeishuError | None = None  # of deleting a message

    def arrives(self, card: str, turn: str, chat: str) -> None:
        """The answer to `turn` appears in its chat."""
        shown = cards.answer_card("Now.", element_id=cards.answer_id(turn, 0))
        self.chats[card] = chat
        self.answers.append(
            RawMessage(card, "", "", "", chat, "interactive", _APP, "app_id", "app", 0, False,
                       cards.card_content({"user_dsl": json.dumps(shown)}), ())
        )  # fmt: skip

    async def list_messages(self, *_: Any, **__: Any) -> list[RawMessage]:
        return self.answers

    async def get_message(self, message_id: str) -> list[Any]:
        if not self.is_readable:
            raise Unreachable("not now", maybe_done=False)
        found = self.chats.get(message_id)
        return [SimpleNamespace(chat_id=found, thread_id="")] if found else []

    async def delete_ephemeral(self, message_id: str) -> None:
        if message_id not in self.of_one:
            raise FeishuError(230001, "not a message that one person sees")
        self.of_one.remove(message_id)

    async def delete_message(self, message_id: str) -> None:
        if self.refusal:
            raise self.refusal
        del self.chats[message_id]

    async def patch_card(self, message_id: str, content: str) -> None:
        self.notices.append(message_id)

    async def send(self, to: str, *_: Any, **__: Any) -> SentMessage:
        self.notices.append(to)
        return SentMessage("om_notice")

    @property
    def comments(self) -> Platform:
        return self

    async def remove(self, place: CommentPlace, reply_id: str) -> None:
        del self.chats[f"{place.comment_id} {reply_id}"]


@dataclass
class Worker:
    """What withdraws cards; everything else of `Services` it must not touch."""

    rpc: Rpc
    feishu: Platform
    settings: Any = field(default_factory=lambda: SimpleNamespace(feishu_app_id=_APP))
    transcripts: HeldTranscripts = field(default_factory=HeldTranscripts)
    queue: Any = None

    clock = staticmethod(time.time)

    @property
    def store(self) -> MemoryStore:
        return MemoryStore(self.rpc)


def worker_without_memory(platform: Platform) -> Services:
    return cast(Services, Worker(cast(Rpc, None), platform))


async def answer(store: MemoryStore, where: AgentMemoryContext, turn: str, card: str) -> None:
    """A turn that says it sent this card, and whose question is taken back."""
    await sent_answer(store, where, turn, card)
    await store.take_back(turn, where.chat_id)


async def sent_answer(store: MemoryStore, where: AgentMemoryContext, turn: str, card: str) -> None:
    await store.begin_turn(where, turn_id=turn, content=ASKED)
    await store.record_reply(where, turn_id=turn, cards=["Now."])
    await store.mark_sent(where, turn_id=turn, chunk=0, content="Now.", message_id=card)


@pytest.mark.parametrize("is_readable", [True, False])
async def test_a_card_in_another_chat_stays(database_url: str, is_readable: bool) -> None:
    pool = connection_pool(database_url, size=2)
    await pool.open()
    group, platform = Group(), Platform(is_readable=is_readable)
    worker = Worker(PostgresRpc(pool), platform)
    own, theirs = group.message("own_card"), group.message("their_card")
    alone = group.p2p("alice")
    platform.chats = {own: alone.chat_id, theirs: group.chat("of others")}
    for turn, card in (("one", own), ("two", theirs)):
        await answer(MemoryStore(worker.rpc), alone, group.message(turn), card)

    await withdraw_cards(cast(Services, worker))

    await pool.close()
    assert (own in platform.chats, theirs in platform.chats) == (False, is_readable)


async def test_a_card_that_arrives_after_its_question_was_taken_back_is_withdrawn(
    database_url: str,
) -> None:
    """Its worker was killed while it sent the card."""
    pool = connection_pool(database_url, size=2)
    await pool.open()
    group, platform = Group(), Platform()
    worker = Worker(PostgresRpc(pool), platform)
    alice, turn, card = group.turn("alice"), group.message("asked"), group.message("card")
    store = MemoryStore(worker.rpc)
    await store.begin_turn(alice, turn_id=turn, content=ASKED)
    await store.record_reply(alice, turn_id=turn, cards=["Now."])
    await store.take_back(turn, alice.chat_id)

    await withdraw_cards(cast(Services, worker))
    platform.arrives(card, turn, alice.chat_id)
    with psycopg.connect(database_url) as connection:
        connection.execute("update agent_withdrawals set due_at = now()")
    await withdraw_cards(cast(Services, worker))

    await pool.close()
    assert card not in platform.chats


async def test_a_retraction_reaches_the_chat_the_queue_and_what_the_worker_holds_at_once(
    database_url: str, tmp_path: Path
) -> None:
    pool = connection_pool(database_url, size=2)
    await pool.open()
    group, platform = Group(), Platform()
    settings = SimpleNamespace(feishu_app_id=_APP, data_dir=tmp_path, receipt_key="")
    worker = Worker(PostgresRpc(pool), platform, settings, queue=QueueOperations(database_url))
    alice, turn, card = group.turn("alice"), group.message("asked"), group.message("card")
    platform.chats = {card: alice.chat_id}
    alone = group.p2p("alice")
    await worker.store.begin_turn(alone, turn_id=group.message("alone"), content=ASKED)
    await sent_answer(worker.store, alice, turn, card)
    payload = {"event": {"message": {"message_id": turn, "chat_id": alice.chat_id}}}
    with closing(Inbox(database_url)) as inbox:
        inbox.enqueue(turn, payload, lock=None, received_ms=1)
    line = [turn, None, "Alice", alice.actor_id, ASKED, 1, False, False, ""]
    heard = {"messages": [line], "topics": {}, "answered": [], "mark": {"last": 1}}
    chat = {"channel_id": alice.chat_id, "started_at": 0, "last_activity": 1, "quiet": False}
    worker.transcripts.conversation(alice.tenant_key, HeldTranscript(), {**heard, **chat})

    await handle_retraction(cast(Services, worker), RetractedMessage(turn, alice.chat_id))

    receipts = await ReceiptStore(worker.rpc).own(alice.actor_id, alice.tenant_key, limit=9)
    await pool.close()
    assert [receipt.fields["kind"] for receipt in receipts] == ["retraction"]
    assert platform.notices == [alice.actor_id], "the same words stay elsewhere"
    assert platform.chats == {}
    assert QueueOperations(database_url).unfinished_jobs() == []
    assert worker.transcripts.of(alice.tenant_key, alice.chat_id) == HeldTranscript()


async def test_an_answer_in_a_document_is_withdrawn_there(database_url: str) -> None:
    pool = connection_pool(database_url, size=2)
    await pool.open()
    platform = Platform({"c1 r2": "doc:doccn:c1"})
    worker = Worker(PostgresRpc(pool), platform)
    here = memory_context(
        chat_id="doc:doccn:c1", root="", subject="ou_ann", actor="ou_ann", tenant_key="tenant"
    )
    await answer(worker.store, here, "comment:docx:r1", "comment:docx:r2")

    await withdraw_cards(cast(Services, worker))

    await pool.close()
    assert platform.chats == {}


async def test_a_card_that_one_person_sees_is_taken_from_them() -> None:
    platform = Platform(of_one={"om_card"})
    await withdraw_card(worker_without_memory(platform), "om_card", of_one=True)
    assert platform.of_one == set()


async def test_a_card_that_may_not_be_deleted_says_that_its_question_was_taken_back() -> None:
    platform = Platform({"om_card": "oc"}, refusal=FeishuError(230026, "no permission"))
    await withdraw_card(worker_without_memory(platform), "om_card")
    assert platform.notices == ["om_card"]


async def test_while_feishu_is_busy_a_card_keeps_its_words_and_is_withdrawn_later() -> None:
    platform = Platform({"om_card": "oc"}, refusal=FeishuError(99991400, "too fast"))
    with pytest.raises(FeishuError):
        await withdraw_card(worker_without_memory(platform), "om_card")
    assert platform.notices == []
