"""What a person is offered and shown privately: their own place, and who may look into it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from bot.features.private_answers.comparing import helps_more
from memory.errors import AccessDenied
from memory.models import Origin
from memory.rpc import Rpc
from memory.scope import (
    AgentMemoryContext,
    ChatType,
    FeishuPerson,
    memory_context,
    private_context,
)
from memory.store import MemoryStore
from memory.tables.cards import ButtonStore, Click, NewButton, PressResult
from memory.tables.directory import ChatStore
from memory.tables.notes import NoteStore
from memory.tables.private import PrivateStore, offer_origin
from tests.support.backends import Backend
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio

ASKED = "What is the wifi password of the Berlin office?"
TOLD = "The wifi password of the Berlin office is hunter2"


@dataclass
class People:
    """Alice in a group of hers, and what she and others told the bot elsewhere."""

    rpc: Rpc
    group: Group
    memory: MemoryStore = field(init=False)
    private: PrivateStore = field(init=False)

    def __post_init__(self) -> None:
        self.memory, self.private = MemoryStore(self.rpc), PrivateStore(self.rpc)

    def place(self, who: str = "alice", *, tenant: str = "tenant") -> AgentMemoryContext:
        return private_context(self.group.person(who), tenant)

    async def fits(self, question: str = ASKED, who: str = "alice") -> bool:
        place, here = self.place(who), self.group.chat("here")
        return await helps_more(self.private, place, question, asked_in=here)

    async def offer(
        self, turn_id: str, button: NewButton, who: str = "alice", *, thread: str = "here"
    ) -> bool:
        place = self.place(who)
        return await self.private.offer(place, turn_id, button, thread=self.group.message(thread))

    async def joins(self, who: str, chat: str) -> None:
        """The service learns that somebody is in a group, since an hour ago."""
        hour_ago = datetime.now(UTC) - timedelta(hours=1)
        member = FeishuPerson("tenant", self.group.person(who))
        at_ms = int(hour_ago.timestamp() * 1000)
        await ChatStore(self.rpc).add("tenant", self.group.chat(chat), [member], at_ms=at_ms)


@pytest.fixture
async def people(backend: Backend, group: Group) -> AsyncIterator[People]:
    async with backend.rpc() as rpc:
        yield People(rpc, group)


async def test_what_was_told_in_p2p_fits_the_question_of_that_person_only(people: People) -> None:
    assert not await people.fits()
    await exchange(people.memory, people.group.p2p(), TOLD, "Noted.")

    assert await people.fits()
    assert not await people.fits(who="bob")
    assert not await people.fits("Who is in the kitchen?")


async def test_what_was_told_in_another_group_fits_while_they_are_in_it(people: People) -> None:
    there = people.group.turn("alice", chat="there")
    await people.joins("alice", "there")
    await people.joins("bob", "there")
    await exchange(people.memory, there, TOLD, "Noted.")

    assert await people.fits()
    assert not await people.fits(who="bob"), "what Alice told is no knowledge of Bob's own"
    await ChatStore(people.rpc).remove(
        "tenant",
        there.chat_id,
        [FeishuPerson("tenant", people.group.person("alice"))],
        at_ms=int(datetime.now(UTC).timestamp() * 1000),
    )
    assert not await people.fits()


async def test_what_the_group_knows_itself_is_not_private(people: People) -> None:
    await people.joins("alice", "here")
    await exchange(people.memory, people.group.turn("alice", thread="earlier"), TOLD, "Noted.")

    assert not await people.fits()


async def test_facts_and_notes_fit_by_their_words(people: People) -> None:
    fact, note = people.group.p2p("alice"), people.group.p2p("bob")
    await exchange(people.memory, fact, "hello", "Hi.")
    await exchange(people.memory, note, "hello", "Hi.")
    assert not await people.fits()
    await people.memory.merge_working_memory(
        fact, scope="user", patch={"wifi_password_berlin": "hunter2"}
    )
    await NoteStore(people.rpc).create(note, title="Berlin wifi", body="hunter2")

    assert await people.fits()
    assert await people.fits(who="bob")
    assert not await people.fits(who="carol")


async def test_a_fact_that_was_kept_in_the_group_is_not_private_there(people: People) -> None:
    await people.joins("alice", "here")
    await people.joins("alice", "there")
    for chat, is_private in (("here", False), ("there", True)):
        turn = people.group.turn("alice", chat=chat)
        await exchange(people.memory, turn, "hello", "Hi.")
        fact = {"wifi_password_berlin": "hunter2"}
        await people.memory.merge_working_memory(turn, scope="user", patch=fact)
        assert await people.fits() == is_private


async def test_a_look_up_is_no_knowledge_of_its_own(people: People) -> None:
    await exchange(people.memory, people.place(), ASKED, "I found nothing.")

    assert not await people.fits()


async def test_what_was_shown_in_p2p_is_no_knowledge_of_its_own(people: People) -> None:
    question, p2p = await asked(people), people.group.p2p()
    shown = Origin("private_answer", question)
    await exchange(people.memory, p2p, ASKED, "It is hunter2.", origin=shown)
    below = Origin("button", shown.turn_id, "b1")
    await exchange(people.memory, p2p, ASKED, "Deleted: the wifi password.", origin=below)

    assert not await people.fits()
    await exchange(people.memory, p2p, TOLD, "Noted.")
    assert await people.fits()


@pytest.mark.parametrize("question", ["", "?!", "can you tell me please", "请问你知道吗"])
async def test_a_question_about_nothing_fits_nothing(people: People, question: str) -> None:
    await exchange(people.memory, people.group.p2p(), "can you tell me please 请问你知道吗", "Yes.")

    assert not await people.fits(question)


async def test_chinese_fits_too(people: People) -> None:
    await exchange(people.memory, people.group.p2p(), "柏林办公室的无线密码是hunter2", "好的。")

    assert await people.fits("柏林办公室的无线密码是什么？")
    assert not await people.fits("谁负责厨房的咖啡？")


async def test_nobody_looks_up_for_somebody_else(people: People, backend: Backend) -> None:
    await exchange(people.memory, people.group.p2p(), TOLD, "Noted.")
    alice, bob = people.place(), people.place("bob")
    params = {**alice.identity(), "p_tenant_key": "tenant", "p_query": ASKED, "p_but_chat_id": "x"}

    with pytest.raises(AccessDenied):
        await people.rpc.call("private_sources", params, bob)
    with pytest.raises(AccessDenied):
        await people.rpc.call("compared_terms", {**alice.identity(), "p_texts": "[]"}, bob)


def offered(question: str = "om_q") -> NewButton:
    return NewButton("Show me", "show", {"turn_id": question}, "p2p", 3600)


async def asked(people: People, who: str = "alice") -> str:
    """The turn of a question in the group."""
    await exchange(people.memory, people.group.turn(who), ASKED, "I do not know.")
    return f"om_{ASKED}_{people.group.chat()}"


async def test_a_turn_is_offered_once(people: People) -> None:
    turn, button = await asked(people), offered()

    assert await people.offer(turn, button)
    assert not await people.offer(turn, offered(), thread="another")
    assert await people.offer(people.group.message("another"), offered(), thread="another")
    orphans = await people.rpc.call("list_orphans", {"p_limit": 1000}, None)
    assert offer_origin(turn).turn_id not in {row["id"] for row in orphans}
    again = await people.memory.begin_turn(people.group.turn(), turn_id=turn, content=ASKED)
    assert [card.buttons for card in again.reply] == [()], "the group's card shows no offer"


async def test_a_person_is_offered_one_thing_an_hour_in_a_thread(
    people: People, backend: Backend
) -> None:
    first, *others = [people.group.message(f"q{n}") for n in range(5)]
    made = await asyncio.gather(*(people.offer(turn, offered()) for turn in (first, *others)))
    assert sum(made) == 1, "whoever asks for it at the same moment"
    async with backend.rpc() as another:
        private = PrivateStore(another)
        late = people.group.message("late"), offered()
        thread = people.group.message("here")
        assert not await private.offer(people.place(), *late, thread=thread)
        assert not await private.offer(people.group.p2p(), *late, thread=thread)
    assert await people.offer(people.group.message("bob"), offered(), "bob")
    assert await people.offer(people.group.message("there"), offered(), thread="there")

    with psycopg.connect(backend.database_url) as connection:
        connection.execute(
            "update agent_turns set created_at = created_at - interval '1 hour'"
            " where origin = 'offer' and user_id = %s",
            [people.place().user_id],
        )
    assert await people.offer(people.group.message("later"), offered())


async def test_only_the_person_presses_wherever_the_card_is_shown(people: People) -> None:
    turn, button, group = await asked(people), offered(), people.group
    await people.offer(turn, button)
    buttons = ButtonStore(people.rpc)

    def click(who: str, chat: str) -> Click:
        person = group.person(who)
        return Click(button.id, group.chat(chat), "om_card", person, "tenant", f"e{who}{chat}")

    assert await buttons.press(click("bob", "here")) == PressResult("unknown")
    assert (await buttons.look(click("alice", "p2palice"))).verdict == "accepted"
    pressed = await buttons.press(click("alice", "here"))
    assert (pressed.verdict, pressed.kind) == ("accepted", "show")
    assert pressed.conversation_id == people.place().conversation_id
    assert pressed.chat_id == group.person("alice")
    assert await buttons.press(click("alice", "p2palice")) == PressResult("used")
    assert await buttons.press(click("bob", "here")) == PressResult("unknown")


@pytest.mark.parametrize("where", ["p2p", "own place", "former place"])
async def test_what_was_shown_privately_is_found_in_p2p_and_by_nobody_else(
    people: People, where: str
) -> None:
    group, now = people.group, datetime.now(UTC)
    places = {"p2p": group.p2p(), "own place": people.place(), "former place": group.former_place()}
    shown = Origin("private_answer", await asked(people))
    await exchange(people.memory, places[where], ASKED, "It is hunter2.", origin=shown)
    await exchange(people.memory, group.p2p("alice"), "hello", "Hi.")
    for chat in ("here", "there"):
        await people.joins("alice", chat)
        await people.joins("bob", chat)

    async def found(context: AgentMemoryContext) -> list[str]:
        passages = await people.memory.find(context, ASKED, now=now, scope="everywhere")
        return [one.answer for one in passages if "hunter2" in one.answer]

    assert await found(group.p2p("alice")) == ["It is hunter2."]
    assert await found(group.turn("alice")) == []
    assert await found(group.p2p("bob")) == []
    assert await found(people.place("bob")) == []
    assert await found(people.place(tenant="another")) == []


async def test_what_earlier_versions_showed_goes_with_its_question(people: People) -> None:
    question = await asked(people)
    alice = people.group.person("alice")
    place = memory_context(
        chat_id=alice, root=question, subject=alice, actor=alice, tenant_key="tenant",
        chat_type="p2p",
    )  # fmt: skip
    await exchange(people.memory, place, ASKED, "It is hunter2.")
    turn_id, button = f"om_{ASKED}_{place.chat_id}", offered(question)
    await people.private.offer(place, question, button, thread="")
    click = Click(button.id, people.group.chat(), "om_card", place.actor_id, "tenant", "e")
    assert (await ButtonStore(people.rpc).look(click)).verdict == "accepted"
    assert await people.private.shown_cards(place, turn_id) == ("It is hunter2.",)
    assert await people.private.shown_cards(people.place("bob"), turn_id) == ()

    await people.memory.take_back(question, people.group.chat())

    assert await people.private.shown_cards(place, turn_id) == ()
    assert await ButtonStore(people.rpc).look(click) == PressResult("unknown")
    assert await people.memory.list_messages(place.conversation_id) == ()


async def test_the_place_is_the_p2p_conversation_as_soon_as_there_is_one(people: People) -> None:
    own = people.place()
    assert await people.private.place(own) == own
    await exchange(people.memory, own, ASKED, "It is hunter2.")
    assert await people.private.place(own) == own, "that made no p2p chat"

    await exchange(people.memory, people.group.p2p(), "hello", "Hi.")
    assert await people.private.place(own) == people.group.p2p()
    assert await people.private.place(people.place("bob")) == people.place("bob")
    elsewhere = people.place(tenant="another")
    assert await people.private.place(elsewhere) == elsewhere


async def test_what_was_begun_before_there_was_a_p2p_chat_goes_on_where_it_is(
    people: People,
) -> None:
    question, own = await asked(people), people.place()
    shown = Origin("private_answer", question)
    await people.memory.begin_turn(own, turn_id=shown.turn_id, content="/memory", origin=shown)
    await exchange(people.memory, people.group.p2p(), "hello", "Hi.")

    assert await people.private.place(own, question) == own
    assert await people.private.place(own, "another question") == people.group.p2p()


@pytest.mark.parametrize("kind", ["group", "p2p"])
async def test_a_chat_in_which_another_was_heard_is_no_place_for_private_answers(
    people: People, kind: ChatType
) -> None:
    taken_for_p2p = people.group.turn("alice", chat="p2palice", chat_type="p2p")
    await exchange(people.memory, taken_for_p2p, "hello", "Hi.")
    place = await people.private.place(people.place())
    assert place == people.group.p2p()
    bob = people.group.turn("bob", chat="p2palice", chat_type=kind)
    await exchange(people.memory, bob, "hello everybody", "Hi.")

    assert await people.private.place(people.place()) == people.place()


async def test_nobody_looks_up_the_p2p_chat_of_somebody_else(people: People) -> None:
    await exchange(people.memory, people.group.p2p(), "hello", "Hi.")
    params = {**people.place().identity(), "p_tenant_key": "tenant"}

    with pytest.raises(AccessDenied):
        await people.rpc.call("p2p_chat", params, people.place("bob"))


async def test_what_was_shown_in_p2p_is_part_of_that_conversation(people: People) -> None:
    p2p, shown = people.group.p2p(), Origin("private_answer", await asked(people))
    await exchange(people.memory, p2p, "hello", "Hi.")
    await exchange(people.memory, p2p, ASKED, "It is hunter2.", origin=shown)

    own = await people.memory.begin_turn(p2p, turn_id=people.group.message("own"), content="And?")
    assert texts(own)[-3:] == [ASKED, "It is hunter2.", "And?"]
    group = await people.memory.begin_turn(
        people.group.turn(), turn_id=people.group.message("group"), content="And?"
    )
    assert "It is hunter2." not in texts(group)


async def test_what_is_offered_in_p2p_is_pressed_in_the_group_and_nothing_else_of_p2p(
    people: People,
) -> None:
    turn, button, group, p2p = await asked(people), offered(), people.group, people.group.p2p()
    await people.private.offer(p2p, turn, button, thread="")
    await people.memory.begin_turn(p2p, turn_id=group.message("own"), content="hello")
    plain = NewButton("Delete it", "confirm", {"decision": "confirm"}, "p2p", 3600)
    beside = NewButton("Delete it", "confirm", {"beside": group.chat()}, "p2p", 3600)
    await people.memory.record_reply(
        p2p, turn_id=group.message("own"), cards=["Hi."], buttons=[plain, beside]
    )
    buttons = ButtonStore(people.rpc)

    def click(who: str, pressed: NewButton) -> Click:
        person = group.person(who)
        return Click(pressed.id, group.chat(), "om_card", person, "tenant", f"e{who}")

    for pressed in (button, plain, beside):
        assert await buttons.press(click("bob", pressed)) == PressResult("unknown")
    assert await buttons.press(click("alice", plain)) == PressResult("unknown")
    assert (await buttons.press(click("alice", beside))).verdict == "accepted"
    first = await buttons.press(click("alice", button))
    assert (first.verdict, first.conversation_id) == ("accepted", p2p.conversation_id)
    assert await buttons.press(click("alice", button)) == first, "it is delivered again"


async def test_a_persons_own_place_is_no_chat_of_feishus(people: People) -> None:
    await exchange(people.memory, people.place(), ASKED, "It is hunter2.")
    await ChatStore(people.rpc).find()

    taken = await ChatStore(people.rpc).take(a_minute=1000, infos=True, members=True)
    assert people.place().chat_id not in {chat.chat_id for chat in taken}


async def test_a_turn_that_begins_tells_whether_the_sender_reads_elsewhere(people: People) -> None:
    async def elsewhere(who: str, *, about: str = "") -> bool | None:
        turn = people.group.turn(about or who, sender=who, thread=f"by-{who}-{about}")
        opened = await people.memory.begin_turn(
            turn, turn_id=people.group.message(str(uuid4())), content=ASKED, elsewhere=True
        )
        return opened.elsewhere

    assert await elsewhere("alice") is False
    await people.joins("alice", "here")
    assert await elsewhere("alice") is False
    await people.joins("alice", "there")
    assert await elsewhere("alice") is True
    assert await elsewhere("alice", about="bob") is None
    alice, now_ms = FeishuPerson("tenant", people.group.person("alice")), int(time.time() * 1000)
    there = people.group.chat("there")
    await ChatStore(people.rpc).remove("tenant", there, [alice], at_ms=now_ms)
    assert await elsewhere("alice") is False

    assert await elsewhere("bob") is False
    await exchange(people.memory, people.group.p2p("bob"), "My lunch is at noon", "noted")
    assert await elsewhere("bob") is True
