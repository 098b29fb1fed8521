"""Random sequences of asking, pressing and dying: nothing is written without the asker's press, it
is written once, and Undo deletes just that. Buttons are those of the database, Feishu is the
stand-in platform. AGENDA_COUNT=1000 tries many more."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.outbox.buttons import Reply
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, AgentMemoryContext, memory_context
from memory.store import MemoryStore
from memory.tables.cards import ButtonStore, Click, NewButton, new_button_id
from tests.support import depth
from tests.support.agendas import TENANT, AgendaScene, Killed, offered_payload

pytestmark = pytest.mark.anyio

COUNT = depth.count("AGENDA_COUNT", short=12, deep=1000)
STEPS = 10
_OTHERS = ("Bob", "陈晨")


@dataclass
class OfferedButton:
    """A button on a card, what it would do, and what has come of it."""

    title: str
    kind: str
    card: str
    confirm: NewButton
    cancel: NewButton | None = None
    presses: int = 0
    written: bool = False
    undo: OfferedButton | None = None
    expired: bool = False


@dataclass
class AgendaSequence:
    """One history. `expected`: what has to stand in calendars and tasks, and how often."""

    scene: AgendaScene
    rpc: Rpc
    chance: random.Random
    offers: list[OfferedButton] = field(default_factory=list)
    expected: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def context(self, who: str) -> AgentMemoryContext:
        person = self.scene.people[who]
        return memory_context(
            chat_id="oc_here", root=MAIN_ROOT, subject=person, actor=person, tenant_key=TENANT
        )

    async def card(self, *buttons: NewButton) -> str:
        """An answer to Alice with these buttons; returns the card's id."""
        memory, turn, alice = MemoryStore(self.rpc), f"om_{new_button_id()}", self.context("Alice")
        await memory.begin_turn(alice, turn_id=turn, content="Q")
        await memory.record_reply(alice, turn_id=turn, cards=["A"], buttons=buttons)
        await memory.mark_sent(alice, turn_id=turn, chunk=0, content="A", message_id=f"{turn}_0")
        return f"{turn}_0"

    async def ask(self) -> None:
        """Alice asks for a meeting or a task, and is offered it."""
        title, deps = f"t{new_button_id()}", self.scene.deps()
        kind = self.chance.choice(["events", "tasks"])
        if kind == "events":
            hours = f"{self.chance.randrange(9, 17):02}:00"
            at = f"{self.scene.now():%Y}-12-{self.chance.randrange(1, 28):02}T{hours}"
            await self.scene.call(deps, "book_meeting", title=title, at=at, with_whom=["Bob"])
        else:
            await self.scene.call(deps, "make_task", title=title, for_whom="Bob")
        payload, group = offered_payload(deps), new_button_id()
        confirm = NewButton("Confirm", "confirm", payload, "group", 3600, group)
        cancel = NewButton(
            "Cancel", "confirm", {**payload, "decision": "cancel"}, "group", 3600, group
        )
        card = await self.card(confirm, cancel)
        self.offers.append(OfferedButton(title, kind, card, confirm, cancel))

    async def press(self, who: str, one: OfferedButton, button: NewButton, event: str = "") -> None:
        """Somebody presses; what counts is done, over deaths of the worker."""
        click = Click(
            button.id, "oc_here", one.card, self.scene.people[who], TENANT, event or new_button_id()
        )
        press = await ButtonStore(self.rpc).press(click)
        self.seen[press.verdict] += 1
        if who != "Alice":
            assert press.verdict == "not_yours"
            return
        if one.expired and not one.presses:
            assert press.verdict == "expired"
            return
        one.presses += 1
        if one.presses > 1:
            assert press.verdict == "used"
            return
        assert press.verdict == "accepted"
        if press.payload["decision"] != "confirm":
            return
        reply = await self._done(press.payload)
        if one.written:
            self.expected[one.title] -= 1
            self.seen["undone"] += 1
            return
        one.written = True
        self.expected[one.title] += 1
        (undo,) = reply.buttons
        one.undo = OfferedButton(one.title, one.kind, await self.card(undo), undo, written=True)

    async def _done(self, payload: dict[str, Any]) -> Reply:
        attempts = 1
        while self.chance.random() < 0.4:  # the worker dies
            self.scene.transport.dies = (self.chance.randrange(0, 5), self.chance.random() < 0.5)
            reply = None
            with contextlib.suppress(Killed):
                reply = await self.scene.press(payload, attempts=attempts)
            self.scene.transport.dies = None
            if reply:
                return reply
            self.seen["killed"] += 1
            attempts += 1
        return await self.scene.press(payload, attempts=attempts)

    async def step(self, expire: Any) -> None:
        known = [*self.offers, *(one.undo for one in self.offers if one.undo)]
        if not known or self.chance.random() < 0.25:
            await self.ask()
            return
        one = self.chance.choice(known)
        buttons = [one.confirm, *([one.cancel] if one.cancel else [])]
        deed = self.chance.choice(["press", "press", "other", "expire", "twice"])
        if deed == "expire":
            await expire(one.confirm.group_id)
            one.expired = True
        elif deed == "other":
            await self.press(self.chance.choice(_OTHERS), one, self.chance.choice(buttons))
        else:
            for _ in range(1 + (deed == "twice")):
                await self.press("Alice", one, self.chance.choice(buttons))

    def check(self) -> None:
        """What stands there is what was confirmed and not undone; Bob's own event stays."""
        kinds = ("events", "tasks")
        found = Counter(one["summary"] for kind in kinds for one in self.scene.written(kind))
        assert found == +self.expected + Counter({"own": 1})


@pytest.fixture
async def rpc(database_url: str) -> AsyncIterator[tuple[Rpc, Any]]:
    async with connection_pool(database_url, size=2) as pool:

        async def expire(group_id: str) -> None:
            async with pool.connection() as connection:
                await connection.execute(
                    "update public.agent_buttons set expires_at = now() - interval '1 second'"
                    " where group_id = %s",
                    [group_id],
                )

        yield PostgresRpc(pool), expire


async def test_nothing_is_written_without_the_asker_and_undo_is_exact(
    rpc: tuple[Rpc, Any],
) -> None:
    store, expire = rpc
    seen: Counter[str] = Counter()
    for seed in range(COUNT):
        scene = AgendaScene()
        scene.connect("Alice")
        scene.add("Bob", "own", "2026-12-01T20:00:00", "2026-12-01T21:00:00")
        sequence = AgendaSequence(scene, store, random.Random(seed), seen=seen)
        for _ in range(STEPS):
            await sequence.step(expire)
            sequence.check()
    print(dict(seen))
    assert {"accepted", "used", "not_yours", "expired", "killed", "undone"} <= seen.keys()
