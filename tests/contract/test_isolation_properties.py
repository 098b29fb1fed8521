"""Isolation as a property: many people at once, in many chats, threads and tenants, at random.

Whatever is stored carries a tag that says whose it is and where. Every call of the memory's stores
is made with the token of some turn, at random over a direct connection and Supabase's API; whatever
it gives back may hold only tags that this token may see. What may be seen is stated here a second
time, in Python. `ISOLATION_STEPS=n` makes so many calls; `ISOLATION_SEED=n` repeats
a run.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import psycopg
import pytest

from bot.listening.conversation_store import ChatConversations
from bot.listening.transcript import MessageRecord
from memory.errors import StoreError, StoreUnavailable
from memory.models import QuestionEmbedding
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import ButtonStore, Click, NewButton
from memory.tables.derived import EmbeddingStore
from memory.tables.items import ItemStore
from memory.tables.notes import NoteStore
from tests.support import depth
from tests.support.backends import Backend, PostgresBackend, SupabaseBackend
from tests.support.people import Group

NOW = datetime.now(UTC)

pytestmark = pytest.mark.anyio

STEPS, AT_ONCE = depth.count("ISOLATION_STEPS", short=300, deep=2000), 12
PEOPLE, CHATS, THREADS, TENANTS = 4, 4, 2, ("tenant0", "tenant1")

# Everything is alike: only the scope can keep it apart.
ALIKE = QuestionEmbedding("m", "[1, 0.5]", 0.5)

Reach = Literal["thread", "chat", "everywhere", "token"]

_TAG = re.compile(r"⟦(\w+) (\w+) (\w+) (\w+) (\w+) (\d+)⟧")


@dataclass(frozen=True, slots=True)
class Tag:
    """Whose something is and where it was said; `kind` is what it is."""

    kind: str
    tenant: str
    subject: str
    chat: str
    root: str
    number: int

    def __str__(self) -> str:
        return f"⟦{self.kind} {self.tenant} {self.subject} {self.chat} {self.root} {self.number}⟧"

    @classmethod
    def of(cls, kind: str, turn: AgentMemoryContext, number: int) -> Tag:
        return cls(kind, turn.tenant_key, turn.user_id, turn.chat_id, turn.root_id, number)


def tags_in(value: object) -> set[Tag]:
    """All tags anywhere in a result."""
    return {Tag(*match[:5], int(match[5])) for match in _TAG.findall(repr(value))}


@dataclass
class Truth:
    """What was written, by tag number, and who may see what."""

    shared: dict[int, set[str]] = field(default_factory=dict)
    notes: dict[str, Tag] = field(default_factory=dict)
    words: dict[Tag, AgentMemoryContext] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    buttons: dict[str, tuple[NewButton, AgentMemoryContext, str]] = field(default_factory=dict)
    presses: Counter[str] = field(default_factory=Counter)

    def may_see(self, tag: Tag, turn: AgentMemoryContext, reach: Reach) -> bool:
        """Whether a call with `turn`'s token that reaches so far may give back `tag`."""
        if tag.tenant != turn.tenant_key:
            return False
        return tag.chat == turn.chat_id or turn.chat_id in self.shared.get(tag.number, ())


class Crowd:
    """Random turns of random people, and everything they do to the memory."""

    def __init__(self, rpcs: list[Rpc], seed: int) -> None:
        self.truth = Truth()
        self.group = Group()
        self.seen: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        self._rpcs = rpcs
        self._dice = random.Random(seed)
        self._number = 0

    # Dice

    def turn(self) -> AgentMemoryContext:
        """Somebody's turn, in one case of three about somebody else."""
        subject, other, chat = (self._dice.randrange(n) for n in (PEOPLE, PEOPLE, CHATS))
        sender = other if self._dice.random() < 1 / 3 else subject
        return self.group.turn(
            f"p{subject}",
            sender=f"p{sender}",
            thread=f"t{self._dice.randrange(THREADS)}",
            chat=f"c{chat}",
            tenant=TENANTS[chat % 2],
        )

    def astray(self) -> AgentMemoryContext:
        """A turn whose token may be of another tenant than the chat: it only reads."""
        turn = self.turn()
        tenant = self._dice.choice(TENANTS)
        sender = turn.actor_id.split("_")[1]
        return self.group.turn(
            turn.user_id.split("_")[1],
            sender=sender,
            thread=turn.root_id.split("_")[1],
            chat=turn.chat_id.split("_")[1],
            tenant=tenant,
        )

    def rpc(self) -> Rpc:
        return self._dice.choice(self._rpcs)

    def memory(self) -> MemoryStore:
        return MemoryStore(self.rpc())

    def notes(self) -> NoteStore:
        return NoteStore(self.rpc())

    def tag(self, kind: str, turn: AgentMemoryContext) -> Tag:
        self._number += 1
        return Tag.of(kind, turn, self._number)

    def some(self, things: Any, otherwise: str) -> Any:
        return self._dice.choice(list(things)) if things else otherwise

    def step(self) -> tuple[str, Callable[[], Awaitable[None]]]:
        """One thing that somebody does."""
        done = self._dice.choice(_STEPS)
        return done.__name__, lambda: done(self)

    # What comes back

    def check(self, result: object, turn: AgentMemoryContext, reach: Reach = "thread") -> None:
        """Fails when `result` holds anything that `turn` may not see."""
        for tag in tags_in(result):
            assert self.truth.may_see(tag, turn, reach), f"{tag} was given to {turn}"
            self.seen[tag.kind] += 1

    # What people do

    async def ask(self) -> None:
        turn, memory = self.turn(), self.memory()
        question, answer, found = (self.tag(k, turn) for k in ("words", "words", "found"))
        turn_id = self.group.message(f"q{question.number}")
        opened = await memory.begin_turn(
            turn, turn_id=turn_id, content=f"banana {question}", history_limit=50
        )
        self.truth.words[question] = turn
        self.truth.turns.append(turn_id)
        self.check(opened, turn)
        buttons = [self._button("follow_up"), self._button("confirm")]
        call = {"name": "recall", "arguments": {}, "result": f"banana {found}", "ok": True}
        reply = await memory.record_reply(
            turn, turn_id=turn_id, cards=[f"banana {answer}"], tool_calls=[call], buttons=buttons
        )
        self.truth.words[answer] = turn
        self.check(reply, turn)
        sent = self.group.message(f"a{answer.number}")
        await memory.mark_sent(
            turn, turn_id=turn_id, chunk=0, content=f"banana {answer}", message_id=sent
        )
        self.truth.sent.append(sent)
        self.truth.buttons |= {button.id: (button, turn, sent) for button in buttons}

    async def embed(self) -> None:
        turn, store = self.astray(), EmbeddingStore(self.rpc())
        missing = await store.missing(turn, "m", limit=20) or ()
        self.check(missing, turn)
        vectors = [(one, [1.0, self._dice.random()]) for one in missing]
        assert await store.save(turn, "m", vectors) <= len(missing)

    def _button(self, kind: Literal["follow_up", "confirm"]) -> NewButton:
        return NewButton(kind, kind, {"text": kind}, "group", 3600)

    async def take_over_a_turn(self) -> None:
        turn, turn_id = self.turn(), self.some(self.truth.turns, "om_none")
        if turn_id != "om_none":
            self.check(await self.memory().begin_turn(turn, turn_id=turn_id, content="mine"), turn)

    async def keep_a_fact(self) -> None:
        turn = self.turn()
        scope: Literal["chat", "user"] = self._dice.choice(("chat", "user"))
        tag = self.tag("fact" if scope == "chat" else "lasting", turn)
        held = await self.memory().merge_working_memory(
            turn, scope=scope, patch={f"k{tag.number % 20}": str(tag)}
        )
        assert scope == "chat" or turn.speaks_for_self
        self.check(held, turn)

    async def read_facts(self) -> None:
        turn = self.astray()
        self.check(await self.memory().working_memory(turn), turn)

    async def clear_facts(self) -> None:
        turn = self.turn()
        scope: Literal["chat", "user"] = self._dice.choice(("chat", "user"))
        await self.memory().clear_working_memory(turn, scope=scope)
        assert scope == "chat" or turn.speaks_for_self

    async def recall(self) -> None:
        turn = self.astray()
        scope: Literal["thread", "chat", "everywhere"] = self._dice.choice(
            ("thread", "chat", "everywhere")
        )
        likeness = self._dice.choice((None, ALIKE))
        query = "banana" if likeness is None else "in other words"
        found = await self.memory().find(turn, query, now=NOW, scope=scope, k=10, likeness=likeness)
        self.seen["alike"] += bool(likeness and found)
        self.check(found, turn, scope)

    async def quote(self) -> None:
        turn = self.astray()
        said = await self.memory().said(turn, self.some(self.truth.sent, "om_none"))
        self.check(said, turn, "chat")

    async def write_a_note(self) -> None:
        turn = self.turn()
        tag = replace(self.tag("note", turn), subject=turn.actor_id)  # its author's
        note = await self.notes().create(turn, title=f"banana {tag.number}", body=str(tag))
        self.truth.notes[note.id] = tag
        self.check(note, turn)

    async def read_a_note(self) -> None:
        turn = self.astray()
        self.check(await self.notes().get(turn, self.some(self.truth.notes, "note_none")), turn)

    async def look_for_notes(self) -> None:
        turn, notes = self.astray(), self.notes()
        self.check(await notes.list(turn, limit=200), turn)
        self.check(await notes.search(turn, "banana", limit=50), turn)
        self.check(await notes.registry(turn), turn)

    async def change_a_note(self) -> None:
        turn, id = self.turn(), self.some(self.truth.notes, "note_none")
        self.check(await self.notes().update(turn, id, add_tags=["changed"]), turn)
        self.assert_own(id, turn)

    async def share_a_note(self) -> None:
        turn, id = self.turn(), self.some(self.truth.notes, "note_none")
        tag = self.truth.notes.get(id)
        # before the call: somebody may read it while the call returns
        if tag and (tag.subject, tag.tenant) == (turn.actor_id, turn.tenant_key):
            self.truth.shared.setdefault(tag.number, set()).add(turn.chat_id)
        self.check(await self.notes().share(turn, id), turn)
        self.assert_own(id, turn)

    async def delete_a_note(self) -> None:
        if self._dice.random() < 0.3:
            turn, id = self.turn(), self.some(self.truth.notes, "note_none")
            if await ItemStore(self.rpc()).forget(turn, "note", id):  # wherever they wrote it
                self.assert_own(id, turn)

    def assert_own(self, id: str, turn: AgentMemoryContext) -> None:
        tag = self.truth.notes[id]
        assert (tag.subject, tag.tenant) == (turn.actor_id, turn.tenant_key), f"{tag} by {turn}"

    async def talk(self) -> None:
        turn = self.turn()
        chat, tag = ChatConversations(self.rpc(), turn), self.tag("talk", turn)
        at = tag.number
        record = MessageRecord("somebody", turn.actor_id, str(tag), at, is_bot=False,
                               message_id=self.group.message(f"m{at}"))  # fmt: skip
        heard = await chat.append(turn.chat_id, record, active_since=0, keep=30)
        if heard is None:
            await chat.begin(turn.chat_id, at, [record])
        self.check(heard, turn)

    async def listen_elsewhere(self) -> None:
        turn, other = self.astray(), self.turn()
        self.check(await ChatConversations(self.rpc(), turn).load(other.chat_id), turn)

    async def press(self) -> None:
        presser = self.turn()
        id = self.some(self.truth.buttons, "")
        if not id:
            return
        button, shown_to, card = self.truth.buttons[id]
        click = Click(id, presser.chat_id, card, presser.actor_id, presser.tenant_key,
                      secrets.token_hex(8))  # fmt: skip
        if (await ButtonStore(self.rpc()).press(click)).verdict != "accepted":
            self.refused["press"] += 1
            return
        self.truth.presses[button.group_id] += 1
        assert (presser.chat_id, presser.tenant_key) == (shown_to.chat_id, shown_to.tenant_key)
        assert button.kind == "follow_up" or presser.actor_id == shown_to.actor_id
        assert self.truth.presses[button.group_id] == 1

    async def claim_to_be_somebody_else(self) -> None:
        """The right token with somebody else's identity in the arguments: the policies decide."""
        turn, victim = self.astray(), self.turn()
        identity = {
            "p_conversation_id": victim.conversation_id,
            "p_user_id": victim.user_id,
            "p_actor_id": victim.user_id,
        }
        placed = {**identity, "p_tenant_key": victim.tenant_key, "p_chat_id": victim.chat_id}
        note = self.some(self.truth.notes, "note_none")
        function, params = self._dice.choice(
            [
                ("get_working_memory", {**identity, "p_tenant_key": victim.tenant_key}),
                ("recall", {**placed, "p_query": "banana", "p_scope": "everywhere", "p_k": 20}),
                ("recall", {**placed, "p_query": "?", "p_scope": "everywhere", "p_k": 20,
                            "p_spans": "[]", "p_boost": 1.0, "p_before_id": None, "p_model": "m",
                            "p_embedding": ALIKE.embedding, "p_weight": 1.0}),
                ("messages_to_embed", {**identity, "p_tenant_key": victim.tenant_key,
                                       "p_model": "n", "p_limit": 50, "p_recent": None}),
                ("said_message", {**placed, "p_message_id": self.some(self.truth.sent, "om_no")}),
                ("get_note", {**placed, "p_note_id": note}),
                ("list_notes", {**placed, "p_tags": "[]", "p_limit": 200}),
                ("search_notes", {**placed, "p_terms": '["banana"]', "p_limit": 50}),
                ("search_notes", {**placed, "p_terms": '["none"]', "p_limit": 50, "p_model": "m",
                                  "p_embedding": ALIKE.embedding}),
                ("note_registry", placed),
            ]
        )  # fmt: skip
        self.check(await self.rpc().call(function, params, turn), turn, "token")


_STEPS: list[Callable[[Crowd], Awaitable[None]]] = [
    Crowd.ask, Crowd.ask, Crowd.ask, Crowd.embed, Crowd.embed, Crowd.take_over_a_turn,
    Crowd.keep_a_fact, Crowd.keep_a_fact,
    Crowd.read_facts, Crowd.clear_facts, Crowd.recall, Crowd.recall, Crowd.quote,
    Crowd.write_a_note, Crowd.write_a_note, Crowd.read_a_note, Crowd.look_for_notes,
    Crowd.change_a_note, Crowd.share_a_note, Crowd.delete_a_note, Crowd.talk, Crowd.talk,
    Crowd.listen_elsewhere, Crowd.press, Crowd.press,
    Crowd.claim_to_be_somebody_else, Crowd.claim_to_be_somebody_else,
]  # fmt: skip
_READING = frozenset({"recall", "quote", "read_a_note", "look_for_notes", "listen_elsewhere"})


@pytest.fixture(params=["postgres", "postgres and supabase"])
def backends(request: pytest.FixtureRequest) -> list[Backend]:
    """One database, reached in one way or in both at once, always with the token of the turn."""
    url = request.getfixturevalue("shared_database_url")
    direct = PostgresBackend(url, request.getfixturevalue("postgres_server").socket_folder)
    if request.param == "postgres":
        return [direct]
    return [direct, SupabaseBackend(request.getfixturevalue("supabase_lite"))]


@pytest.fixture
async def rpcs(backends: list[Backend]) -> AsyncIterator[list[Rpc]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(backend.rpc(timeout_s=60)) for backend in backends]


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("ISOLATION_SEED") or depth.dice().randrange(10**9))


async def test_nobody_is_ever_given_what_is_not_theirs(
    rpcs: list[Rpc], seed: int, shared_database_url: str
) -> None:
    crowd = Crowd(rpcs, seed)
    await everybody_at_once(crowd, seed)

    kinds = {"words", "found", "fact", "lasting", "note", "talk", "alike"}
    assert kinds == set(crowd.seen), f"seed {seed}: not everything was ever read: {crowd.seen}"
    assert len(crowd.refused) > 5, f"seed {seed}: hardly anything was refused: {crowd.refused}"
    await assert_nothing_was_lost(crowd, seed)
    assert_stored_where_it_belongs(crowd, shared_database_url, seed)


async def everybody_at_once(crowd: Crowd, seed: int) -> None:
    """All steps, `AT_ONCE` at a time; a refusal is an answer, anything else is not. On a loaded
    machine the server may fail to answer a few times; what only reads goes on without an answer."""
    left = iter(range(STEPS))

    async def work() -> None:
        for number in left:
            name, act = crowd.step()
            try:
                await act()
            except StoreUnavailable:
                crowd.unanswered[name] += 1
                if name not in _READING or crowd.unanswered.total() > STEPS / 50:
                    raise
            except StoreError:
                crowd.refused[name] += 1
            except AssertionError as exc:
                exc.add_note(f"ISOLATION_SEED={seed}, step {number}: {name}")
                raise

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def assert_nothing_was_lost(crowd: Crowd, seed: int) -> None:
    """Everybody finds all of their own exchanges in each thread. Others' are only there as far as
    the window has room."""
    threads: dict[AgentMemoryContext, set[Tag]] = {}
    for tag, asked in crowd.truth.words.items():
        threads.setdefault(asked, set()).add(tag)
    for own, said in threads.items():
        turn_id = crowd.group.message(f"end{own.conversation_id}{own.user_id}{own.actor_id}")
        opened = await crowd.memory().begin_turn(
            own, turn_id=turn_id, content="all?", history_limit=1000
        )
        heard = {tag for tag in tags_in(opened.history) if tag.kind == "words"}
        assert said <= heard, f"seed {seed}: {own}"


def assert_stored_where_it_belongs(crowd: Crowd, url: str, seed: int) -> None:
    """Every row carries the ids of the tags in it."""
    with psycopg.connect(url, autocommit=True) as database:
        for table, row in _rows(database, crowd.group.mark):
            for tag in tags_in({k: v for k, v in row.items() if k not in ("was", "became")}):
                expected = {
                    "user_id": tag.subject,
                    "tenant_key": tag.tenant,
                    "chat_id": tag.chat,
                }
                wrong = {k for k, v in expected.items() if k in row and row[k] != v}
                assert not wrong, f"seed {seed}: {table} has {tag} in {row}"


def _rows(database: psycopg.Connection, mark: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tables = ("agent_messages", "agent_working_memory", "agent_notes", "chat_transcript")
    for table in tables:
        query = f"select to_jsonb(t) from {table} t where to_jsonb(t)::text like %s"
        for (row,) in database.execute(query, [f"%{mark}%"]).fetchall():
            yield table, row
