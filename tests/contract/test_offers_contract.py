"""The offer of a private answer, and the answer: with the question they are gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from memory.errors import AccessDenied
from memory.models import Origin
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, FeishuPerson, private_context
from memory.store import MemoryStore
from memory.tables.cards import ButtonStore, Click, NewButton, PressResult, Withdrawals
from memory.tables.directory import ChatStore
from memory.tables.items import ItemStore
from memory.tables.operations import Operations
from memory.tables.private import PrivateStore, offer_origin
from tests.support.backends import Backend
from tests.support.exchanges import deliver
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    """Alice asked in a group, and is offered a private answer."""

    rpc: Rpc
    shown_in: str = "p2p"
    group: Group = field(default_factory=Group)

    def __post_init__(self) -> None:
        self.memory, self.private = MemoryStore(self.rpc), PrivateStore(self.rpc)
        self.question, self.card = self.group.message("asked"), self.group.message("offer")
        self.there = self.group.turn("alice")
        self.place = {
            "p2p": self.group.p2p(),
            "own place": private_context(self.there.actor_id, "tenant"),
            "former place": self.group.former_place(),
        }[self.shown_in]

    async def ask(self) -> None:
        await self.memory.begin_turn(self.there, turn_id=self.question, content="What is it?")
        await self.answer(self.there, self.question, "I do not know.")
        button = NewButton(
            "Show me", "show", {"turn_id": self.question}, "p2p", 3600, id=self.id(0)
        )
        await self.private.offer(self.place, self.question, button, thread="")

    def id(self, number: int) -> str:
        return f"{self.group.mark}{number}"

    async def answer(
        self, context: AgentMemoryContext, turn_id: str, text: str, *, sent: bool = True
    ) -> None:
        where = {"chat_id": self.there.chat_id}
        button = NewButton("Share here", "share", where, "p2p", 3600, id=self.id(1))
        buttons = [button] if context == self.place else []
        await self.memory.record_reply(context, turn_id=turn_id, cards=[text], buttons=buttons)
        if sent:
            await deliver(self.memory, context, turn_id, [text])

    async def press(self, number: int, context: AgentMemoryContext, *, sent: bool = True) -> str:
        """What comes of a button; returns the id of the card."""
        origin = self.origin(number)
        turn_id = origin.turn_id
        await self.memory.begin_turn(context, turn_id=turn_id, content="What is it?", origin=origin)
        await self.answer(context, turn_id, "It is hunter2.", sent=sent)
        return f"{turn_id}_card0"

    def origin(self, number: int) -> Origin:
        """Of what comes of a button: the first stands below the offer, the second below what that
        shows."""
        offer = offer_origin(self.question).turn_id
        shown = Origin("private_answer", offer, self.id(0))
        return Origin("button", shown.turn_id, self.id(1)) if number else shown

    async def keep(self) -> bool:
        return await self.private.keep_offer(self.place, self.question, self.card)

    async def take_back(self) -> None:
        await self.memory.take_back(self.question, self.there.chat_id)

    async def due(self) -> dict[str, str]:
        """What is to be withdrawn, and where: of one person by their open_id."""
        found: dict[str, str] = {}
        while taken := await Withdrawals(self.rpc).take():
            for one in taken:
                alone = one.of_one and one.chat_id == self.place.chat_id
                found[one.id] = self.place.actor_id if alone else one.chat_id
        return found


@pytest.fixture
async def scene(backend: Backend, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with backend.rpc() as rpc:
        scene = Scene(rpc, getattr(request, "param", "p2p"))
        await scene.ask()
        yield scene


EVERY_PLACE = pytest.mark.parametrize("scene", ["p2p", "own place", "former place"], indirect=True)


@EVERY_PLACE
async def test_an_offer_goes_with_its_question(scene: Scene) -> None:
    assert await scene.keep()
    await scene.take_back()

    assert (await scene.due())[scene.card] == scene.place.actor_id


@EVERY_PLACE
async def test_an_offer_that_was_on_its_way_when_its_question_went_goes_too(scene: Scene) -> None:
    await scene.take_back()
    assert scene.card not in await scene.due()

    assert not await scene.keep()
    assert (await scene.due())[scene.card] == scene.place.actor_id


async def test_nobody_else_says_which_card_an_offer_is(scene: Scene) -> None:
    assert await scene.keep()
    bob = private_context(scene.group.person("bob"), "tenant")
    named = {"p_turn_id": scene.question, "p_message_id": scene.group.message("another")}
    params = {**scene.place.identity(), "p_tenant_key": "tenant", **named}
    with pytest.raises(AccessDenied):
        await scene.rpc.call("keep_offer", params, bob)

    assert not await scene.private.keep_offer(bob, scene.question, named["p_message_id"])
    assert (await scene.due())[named["p_message_id"]] == bob.actor_id, "it is Bob's own card"
    await scene.take_back()
    assert named["p_message_id"] not in await scene.due()


@pytest.mark.parametrize("what", ["the person", "the thread"])
async def test_an_offer_goes_when_its_question_is_forgotten(scene: Scene, what: str) -> None:
    assert await scene.keep()
    operations, alice = Operations(scene.rpc), scene.there.actor_id
    if what == "the person":
        await operations.forget_person(alice)
    else:
        await operations.forget_conversation(scene.there.conversation_id, alice, keep_notes=True)

    assert (await scene.due())[scene.card] == alice


@EVERY_PLACE
async def test_a_private_answer_goes_when_its_question_is_forgotten(scene: Scene) -> None:
    place = scene.place
    await scene.memory.begin_turn(place, turn_id=scene.group.message("own"), content="Hello")
    shown = await scene.press(0, place)
    alice, there = scene.there.actor_id, scene.there.conversation_id
    await Operations(scene.rpc).forget_conversation(there, alice, keep_notes=True)

    assert (await scene.due())[shown] == alice
    assert await scene.memory.said(place, scene.origin(0).turn_id) is None
    kept = await scene.memory.said(place, scene.group.message("own"))
    stays = scene.shown_in != "former place"  # that was the question's own
    assert (kept is not None) == stays, "only what came of the question goes"


async def test_an_offer_goes_when_a_fact_of_its_question_is_deleted(scene: Scene) -> None:
    assert await scene.keep()
    patch = {"office": "Berlin"}
    await scene.memory.merge_working_memory(
        scene.there, scope="user", patch=patch, turn_id=scene.question
    )
    items = ItemStore(scene.rpc)
    _, (fact,) = await items.list(scene.there)
    assert await items.forget(scene.there, fact.kind, fact.id, fact.key)

    assert (await scene.due())[scene.card] == scene.place.actor_id


@EVERY_PLACE
async def test_a_private_answer_goes_with_its_question_and_so_does_what_was_shared_of_it(
    scene: Scene,
) -> None:
    assert await scene.keep()
    shown = await scene.press(0, scene.place)
    shared = await scene.press(1, scene.there)
    await scene.take_back()

    due = await scene.due()
    assert due[scene.card] == due[shown] == scene.place.actor_id
    assert due[shared] == scene.there.chat_id


async def test_a_private_answer_that_was_on_its_way_when_its_question_went_goes_too(
    scene: Scene,
) -> None:
    card = await scene.press(0, scene.place, sent=False)
    await scene.take_back()
    assert card not in await scene.due()

    await deliver(scene.memory, scene.place, scene.origin(0).turn_id, ["It is hunter2."])
    assert (await scene.due())[card] == scene.place.actor_id


@EVERY_PLACE
async def test_who_was_given_a_private_answer_is_found_after_that_went_with_its_question(
    scene: Scene,
) -> None:
    p2p, memory = scene.group.p2p(), scene.memory
    source, later = scene.group.message("source"), scene.group.message("later")
    await memory.begin_turn(p2p, turn_id=source, content="The password is hunter2")
    await memory.record_reply(p2p, turn_id=source, cards=["Noted."])
    await deliver(memory, p2p, source, ["Noted."])
    shown = scene.origin(0)
    await memory.begin_turn(scene.place, turn_id=shown.turn_id, content="What?", origin=shown)
    await scene.private.draw_on(scene.place, shown.turn_id, [source], with_notes=False)
    for place, turn_id, given in (
        (scene.place, shown.turn_id, source),
        (p2p, later, shown.turn_id),
    ):
        if turn_id == later:
            await memory.begin_turn(p2p, turn_id=later, content="And again?")
        await memory.record_reply(
            place, turn_id=turn_id, cards=["It is hunter2."], source_ids=[given]
        )
        await deliver(memory, place, turn_id, ["It is hunter2."])

    await scene.take_back()
    assert await memory.said(scene.place, shown.turn_id) is None
    assert await memory.said(p2p, f"{later}_card0"), "it tells nothing of the question"
    await memory.take_back(source, p2p.chat_id)
    assert await memory.said(p2p, f"{later}_card0") is None


@EVERY_PLACE
async def test_what_a_question_listed_stays_when_neither_keeps_its_words(scene: Scene) -> None:
    asks = scene.group.message("asks")
    listed = Origin("private_answer", asks)
    await scene.memory.begin_turn(scene.there, turn_id=asks, content="/memory")
    await scene.memory.begin_turn(
        scene.place, turn_id=listed.turn_id, content="/memory", origin=listed
    )
    await ItemStore(scene.rpc).list(scene.place, turn_id=listed.turn_id)
    await scene.memory.record_reply(scene.place, turn_id=listed.turn_id, cards=["Your facts"])
    await scene.memory.record_reply(scene.there, turn_id=asks, cards=[])
    await deliver(scene.memory, scene.place, listed.turn_id, ["Your facts"])

    assert await Withdrawals(scene.rpc).forget_turns() >= 2
    assert await scene.memory.said(scene.place, listed.turn_id) is None
    assert f"{listed.turn_id}_card0" not in await scene.due()


async def test_who_left_the_group_shares_nothing_there(scene: Scene) -> None:
    await scene.press(0, scene.place)
    alice, buttons = scene.there.actor_id, ButtonStore(scene.rpc)
    chats, member = ChatStore(scene.rpc), FeishuPerson("tenant", alice)
    card = f"{scene.origin(0).turn_id}_card0"
    share = Click(scene.id(1), scene.group.chat("p2palice"), card, alice, "tenant", "e")
    now = int(datetime.now(UTC).timestamp() * 1000)
    assert (await buttons.look(share)).verdict == "accepted", "nobody knows who is there"
    await chats.add("tenant", scene.there.chat_id, [member], at_ms=now - 3_600_000)
    assert (await buttons.look(share)).verdict == "accepted"

    await chats.remove("tenant", scene.there.chat_id, [member], at_ms=now)
    assert await buttons.press(share) == PressResult("unknown")
