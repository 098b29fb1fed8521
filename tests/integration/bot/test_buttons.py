"""Buttons in the real database, over every backend, and what the worker does with a click."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, cast

import psycopg
import pytest

from bot.agents.llm.model import Request
from bot.agents.manager import Manager, Stores
from bot.agents.mcp.servers import ActionAlreadyRun, ActionResult, ServerDown
from bot.agents.prompts.prompt import PendingAction
from bot.agents.prompts.tool_context import named_notes
from bot.agents.tools.confirming import SHARE_NOTE
from bot.card_actions.clicks import handle_click
from bot.features.registry import HOOKS
from bot.feishu.client import FeishuClient
from bot.feishu.events import CardAction
from bot.feishu.models import BotInfo, SentMessage
from bot.intake.acceptance import Presses, PressUnavailable
from bot.people.people_directory import BotIdentity, People
from bot.services import Services
from bot.settings import Settings
from memory.errors import IdentityMissing, StoreError, StoreUnavailable
from memory.models import CardButton, Origin
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import (
    ButtonStore,
    Click,
    HandleStore,
    NewButton,
    PressResult,
    new_button_id,
)
from memory.tables.notes import NoteStore
from tests.support.backends import Backend, PostgresBackend
from tests.support.models import Acting
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


@pytest.fixture
def group() -> Group:
    return Group()


def follow_up(text: str = "and then?") -> NewButton:
    return NewButton(text, "follow_up", {"text": text}, "group", 3600)


def confirm(group_id: str, decision: str = "confirm") -> NewButton:
    payload = {
        "id": new_button_id(),
        "tool": "mail__send",
        "arguments": {"to": "ann"},
        "description": "mail",
        "decision": decision,
        "language": "en",
    }
    return NewButton(decision, "confirm", payload, "group", 3600, group_id)


async def show(rpc: Rpc, context: AgentMemoryContext, *buttons: NewButton) -> str:
    """A question of `context`, answered by a card with `buttons`; returns the card's id."""
    memory, question = MemoryStore(rpc), f"om_q_{new_button_id()}"
    await memory.begin_turn(context, turn_id=question, content="Q")
    await memory.record_reply(context, turn_id=question, cards=["one", "two"], buttons=buttons)
    for chunk in range(2):
        await memory.mark_sent(
            context, turn_id=question, chunk=chunk, content="A", message_id=f"{question}_{chunk}"
        )
    return f"{question}_1"


def led_to(card: str, button: NewButton) -> str:
    """The id of the turn that a button of the card leads to."""
    return Origin("button", card.removesuffix("_1"), button.id).turn_id


def click(
    button: NewButton, card: str, presser: AgentMemoryContext, *, event: str = "event"
) -> Click:
    return Click(
        button.id, presser.chat_id, card, presser.actor_id, presser.tenant_key, event + button.id
    )


async def test_buttons_come_back_with_the_last_card_of_the_reply(rpc: Rpc, group: Group) -> None:
    memory, alice, made = MemoryStore(rpc), group.turn(), (follow_up("one"), follow_up("two"))
    turn = group.message("q")
    await memory.begin_turn(alice, turn_id=turn, content="Q")
    _, stored = await memory.record_reply(
        alice, turn_id=turn, cards=["first", "second"], buttons=made
    )

    assert stored[0].buttons == ()
    assert stored[1].buttons == tuple(CardButton(b.id, b.label) for b in made)
    again = await memory.begin_turn(alice, turn_id=turn, content="Q")
    assert again.reply == stored


async def test_a_button_comes_back_with_the_entry_it_stands_beside(rpc: Rpc, group: Group) -> None:
    memory, alice = MemoryStore(rpc), group.turn()
    made = replace(follow_up("one"), payload={"text": "one", "entry": 2})
    turn, card = group.message("q"), group.message("card")
    await memory.begin_turn(alice, turn_id=turn, content="Q")
    _, (stored,) = await memory.record_reply(alice, turn_id=turn, cards=["A"], buttons=[made])
    await memory.mark_sent(alice, turn_id=turn, chunk=0, content="A", message_id=card)
    redrawn = await HandleStore(rpc).card_to_redraw(card, alice.tenant_key)

    assert stored.buttons == (CardButton(made.id, "one", entry=2),)
    assert redrawn
    assert redrawn["buttons"] == [{"id": made.id, "label": "one", "pressed": None, "entry": 2}]


async def test_the_first_reply_keeps_its_buttons(rpc: Rpc, group: Group) -> None:
    memory, alice, first = MemoryStore(rpc), group.turn(), follow_up("first")
    turn = group.message("q")
    await memory.begin_turn(alice, turn_id=turn, content="Q")
    await memory.record_reply(alice, turn_id=turn, cards=["A"], buttons=[first])
    _, stored = await memory.record_reply(
        alice, turn_id=turn, cards=["B"], buttons=[follow_up("second")]
    )

    assert [card.content for card in stored] == ["A"]
    assert stored[0].buttons == (CardButton(first.id, "first"),)


async def test_anyone_in_the_chat_presses_a_follow_up_and_the_first_wins(
    rpc: Rpc, group: Group
) -> None:
    button = follow_up()
    card = await show(rpc, group.turn("alice"), button)
    buttons = ButtonStore(rpc)
    bob, carol = group.turn("bob"), group.turn("carol")

    looked = await buttons.look(click(button, card, carol, event="c"))
    pressed = await buttons.press(click(button, card, bob, event="b"))
    late = await buttons.press(click(button, card, carol, event="c"))

    assert looked.verdict == "accepted"
    assert pressed == PressResult(
        verdict="accepted",
        kind="follow_up",
        label="and then?",
        payload={"text": "and then?"},
        conversation_id=group.turn().conversation_id,
        chat_type="group",
        user_id=group.person("alice"),
        actor_id=group.person("alice"),
        turn_id=card.removesuffix("_1"),
    )
    assert pressed.root_id == group.message("thread")
    assert late == PressResult("used")
    assert await buttons.look(click(button, card, carol, event="c")) == PressResult("used")


async def test_the_same_click_delivered_again_is_the_same_press(rpc: Rpc, group: Group) -> None:
    button = follow_up()
    card = await show(rpc, group.turn(), button)
    once = click(button, card, group.turn("bob"))
    buttons = ButtonStore(rpc)

    first = await buttons.press(once)
    assert first.verdict == "accepted"
    assert await buttons.press(once) == first
    assert await buttons.look(once) == first


async def test_twenty_people_press_at_once_and_one_wins(rpc: Rpc, group: Group) -> None:
    button = follow_up()
    card = await show(rpc, group.turn(), button)
    buttons = ButtonStore(rpc)

    found = await asyncio.gather(
        *(buttons.press(click(button, card, group.turn(f"p{n}"), event=f"{n}")) for n in range(20))
    )

    verdicts = [press.verdict for press in found]
    assert verdicts.count("accepted") == 1
    assert verdicts.count("used") == 19


async def test_only_who_asked_confirms_and_only_one_of_the_group_counts(
    rpc: Rpc, group: Group
) -> None:
    together = new_button_id()
    yes, no = confirm(together), confirm(together, "cancel")
    # Bob asked on Alice's memory: Bob decides, not Alice.
    card = await show(rpc, group.turn("alice", sender="bob"), yes, no)
    buttons = ButtonStore(rpc)
    alice, bob = group.turn("alice"), group.turn("bob")

    assert await buttons.press(click(yes, card, alice)) == PressResult("not_yours")
    assert (await buttons.press(click(no, card, bob))).verdict == "accepted"
    assert await buttons.press(click(yes, card, bob)) == PressResult("used")
    assert await buttons.press(click(yes, card, alice)) == PressResult("not_yours")


async def test_a_card_that_was_sent_while_the_memory_was_away_has_its_buttons(
    rpc: Rpc, group: Group
) -> None:
    memory, alice, button = MemoryStore(rpc), group.turn(), follow_up()
    turn, card = group.message("q"), group.message("card")
    await memory.begin_turn(alice, turn_id=turn, content="Q")
    await memory.record_reply(alice, turn_id=turn, cards=["A"], buttons=[button])
    cards = [{"chunk": 0, "content": "A", "status": "sent", "message_id": card, "file": None}]
    restored = {
        "p_turn_id": turn, **alice.identity(), "p_chat_id": alice.chat_id,
        "p_root_id": alice.root_id, "p_actor_name": "", "p_tenant_key": alice.tenant_key,
        "p_content": "Q", "p_cards": json.dumps(cards), "p_tool_calls": "[]", "p_error": None,
        "p_asked_at": "2026-11-22T12:00:00Z", "p_answered_at": "2026-11-22T12:00:01Z",
    }  # fmt: skip
    assert await rpc.call("restore_turn", restored, alice) == {"state": "sent"}

    buttons = ButtonStore(rpc)
    assert await buttons.press(click(button, group.message("other"), alice)) == PressResult(
        "unknown"
    )
    assert (await buttons.press(click(button, card, alice))).verdict == "accepted"


@pytest.mark.parametrize(
    "changed",
    [
        lambda c: replace(c, button_id=new_button_id()),
        lambda c: replace(c, chat_id="oc_elsewhere"),
        lambda c: replace(c, message_id="om_another_card"),
        lambda c: replace(c, tenant_key="another tenant"),
    ],
    ids=["forged", "other chat", "other card", "other tenant"],
)
async def test_what_does_not_fit_is_unknown(
    rpc: Rpc, group: Group, changed: Callable[[Click], Click]
) -> None:
    button = follow_up()
    card = await show(rpc, group.turn(), button)
    right = click(button, card, group.turn())
    buttons = ButtonStore(rpc)

    assert await buttons.press(changed(right)) == PressResult("unknown")
    assert (await buttons.press(right)).verdict == "accepted"


async def test_nobody_presses_without_a_name(rpc: Rpc, group: Group) -> None:
    button = follow_up()
    card = await show(rpc, group.turn(), button)

    with pytest.raises(IdentityMissing):
        await ButtonStore(rpc).press(replace(click(button, card, group.turn()), operator_id=""))


async def test_an_expired_button_is_not_pressed_any_more_but_a_press_stays(
    rpc: Rpc, group: Group
) -> None:
    late = replace(follow_up(), lives_s=-1)
    card = await show(rpc, group.turn(), late)

    assert await ButtonStore(rpc).press(click(late, card, group.turn())) == PressResult("expired")


async def test_a_follow_up_asks_what_stands_on_it_or_is_not_stored(rpc: Rpc, group: Group) -> None:
    memory, alice, turn = MemoryStore(rpc), group.turn(), group.message("q")
    hidden = NewButton("and then?", "follow_up", {"text": "/forget all"}, "group", 3600)
    await memory.begin_turn(alice, turn_id=turn, content="Q")

    with pytest.raises(StoreError):
        await memory.record_reply(alice, turn_id=turn, cards=["A"], buttons=[hidden])


async def test_buttons_go_with_their_conversation(rpc: Rpc, backend: Backend, group: Group) -> None:
    button, alice = follow_up(), group.turn()
    card = await show(rpc, alice, button)
    await ButtonStore(rpc).press(click(button, card, alice))
    forget = {
        "p_conversation_id": alice.conversation_id,
        "p_user_id": alice.user_id,
        "p_keep_notes": True,
    }
    await rpc.call("forget_conversation", forget, None)

    assert await ButtonStore(rpc).press(click(button, card, alice)) == PressResult("unknown")
    with psycopg.connect(backend.database_url) as connection:
        left = connection.execute("select 1 from agent_presses where button_id = %s", [button.id])
        assert left.fetchall() == []


async def test_a_fresh_start_hides_what_was_said_before(rpc: Rpc, group: Group) -> None:
    memory, alice = MemoryStore(rpc), group.turn()
    await show(rpc, alice)
    await memory.begin_turn(alice, turn_id=group.message("new"), content="/new")
    await memory.start_afresh(alice)
    opened = await memory.begin_turn(alice, turn_id=group.message("next"), content="Q2")

    assert [message.content for message in opened.history] == ["Q2"]
    overview = await memory.overview(alice)
    assert (overview.messages_here, overview.conversations, overview.notes) == (4, 1, 0)


# The edge: synchronous, with a time limit.


async def test_the_edge_is_answered_from_a_loop_of_its_own(
    rpc: Rpc, backend: Backend, group: Group
) -> None:
    async def connect() -> Rpc:
        exits = AsyncExitStack()
        return Opened(await exits.enter_async_context(backend.rpc()), exits)

    button = follow_up()
    card = await show(rpc, group.turn(), button)
    presses = Presses(connect, limit_s=10)
    wanted = click(button, card, group.turn("bob"))
    try:
        looked = await asyncio.to_thread(presses.look, wanted)
        pressed = await asyncio.to_thread(presses.press, wanted)
    finally:
        await asyncio.to_thread(presses.close)

    assert looked == pressed
    assert pressed.verdict == "accepted"


@dataclass
class Opened:
    """A transport that leaves its context when it is closed."""

    rpc: Rpc
    exits: AsyncExitStack

    async def call(self, *arguments: Any) -> Any:
        return await self.rpc.call(*arguments)

    async def close(self) -> None:
        await self.exits.aclose()


class Silent:
    """A memory that never answers."""

    async def call(self, *_: object) -> Any:
        await asyncio.Event().wait()

    async def close(self) -> None: ...


class Broken(Silent):
    """A memory that cannot be reached."""

    async def call(self, *_: object) -> Any:
        raise StoreUnavailable("gone")


@pytest.mark.parametrize("memory", [Silent(), Broken()], ids=["silent", "broken"])
async def test_the_edge_does_not_wait_for_a_memory_that_is_away(memory: Rpc, group: Group) -> None:
    async def connect() -> Rpc:
        return memory

    presses = Presses(connect, limit_s=0.05)
    try:
        with pytest.raises(PressUnavailable):
            await asyncio.to_thread(presses.look, click(follow_up(), "om_card", group.turn()))
    finally:
        await asyncio.to_thread(presses.close)


# The worker: a confirmed action is done once, and its result is answered in the thread.


@dataclass
class Sent:
    """A Feishu that takes everything; `replies` are (message replied to, uuid, content)."""

    replies: list[tuple[str, str, str]] = field(default_factory=list)

    async def bot_info(self) -> BotInfo:
        return BotInfo("ou_bot", "Memo")

    async def names(self, open_ids: Any) -> dict[str, str]:
        return {}

    async def get_message(self, message_id: str, **_: object) -> list[Any]:
        return []

    async def list_messages(self, *_: object, **__: object) -> list[Any]:
        return []

    async def reply(self, message_id: str, *, uuid: str, content: str, **_: object) -> SentMessage:
        self.replies.append((message_id, uuid, content))
        return SentMessage(f"om_{uuid[:20]}")


@dataclass
class Actions:
    """Executes actions: `outcomes` are results or exceptions, in order."""

    outcomes: list[ActionResult | Exception]
    done: list[PendingAction] = field(default_factory=list)

    async def __call__(self, action: PendingAction) -> ActionResult:
        self.done.append(action)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def services(rpc: Rpc, sent: Sent, actions: Actions | None) -> Services:
    feishu = cast(FeishuClient, sent)
    return Services(
        settings=Settings(),
        store=MemoryStore(rpc),
        feishu=feishu,
        own_person=BotIdentity(feishu),
        people=People(feishu),
        manager=Manager(Acting(lambda _: "from the model")),
        rpc=rpc,
        hooks=HOOKS,
        perform=actions,
    )


def pressed(button: NewButton, card: str, presser: AgentMemoryContext) -> CardAction:
    made = click(button, card, presser)
    return CardAction(
        event_id=made.event_id,
        operator_open_id=made.operator_id,
        tenant_key=made.tenant_key,
        value={"b": button.id},
        open_message_id=card,
        open_chat_id=made.chat_id,
        create_time_ms=1_800_000_000_000,
    )


@pytest.fixture
async def direct(database_url: str, postgres_server: Any) -> AsyncIterator[Rpc]:
    async with PostgresBackend(database_url, postgres_server.socket_folder).rpc() as rpc:
        yield rpc


async def test_a_confirmed_action_is_done_once_and_its_result_is_kept(
    direct: Rpc, group: Group
) -> None:
    yes, alice = confirm(new_button_id()), group.turn()
    card = await show(direct, alice, yes)
    sent, actions = Sent(), Actions([ActionResult(True, "mail 7 was sent")])
    worker = services(direct, sent, actions)
    for _ in range(3):
        await handle_click(worker, pressed(yes, card, alice), 0)

    (done,) = actions.done
    assert (done.tool, done.arguments) == ("mail__send", {"to": "ann"})
    assert done.actor_id == alice.actor_id
    ((target, _, content),) = sent.replies
    assert target == card
    assert "Done: mail 7 was sent" in content
    opened = await worker.store.begin_turn(alice, turn_id=group.message("next"), content="Q")
    answer = opened.history[-2]
    assert answer.tool_calls[0]["result"] == "mail 7 was sent"
    assert answer.content.endswith("Done: mail 7 was sent")


async def test_an_action_interrupted_by_a_crash_is_not_repeated(direct: Rpc, group: Group) -> None:
    yes, alice = confirm(new_button_id()), group.turn()
    card = await show(direct, alice, yes)
    sent, actions = Sent(), Actions([RuntimeError("killed in the middle")])
    worker = services(direct, sent, actions)

    with pytest.raises(RuntimeError):
        await handle_click(worker, pressed(yes, card, alice), 0)
    await handle_click(worker, pressed(yes, card, alice), 0)

    assert len(actions.done) == 1
    ((_, _, content),) = sent.replies
    assert "can't tell whether this was done" in content


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (ActionResult(False, "the mailbox is full"), "That didn't work: the mailbox is full"),
        (ServerDown("gone"), "nothing was done"),
        (ActionAlreadyRun("id"), "can't tell whether this was done"),
        (None, "nothing was done"),
    ],
    ids=["refused", "down", "already run", "no such tool"],
)
async def test_what_did_not_work_is_said(
    direct: Rpc, group: Group, outcome: ActionResult | Exception | None, says: str
) -> None:
    yes, alice = confirm(new_button_id()), group.turn()
    card = await show(direct, alice, yes)
    sent = Sent()
    actions = Actions([outcome]) if outcome is not None else None
    await handle_click(services(direct, sent, actions), pressed(yes, card, alice), 0)

    ((_, _, content),) = sent.replies
    assert says in content


@pytest.mark.parametrize(
    ("language", "says", "else_says"),
    [
        (
            "en",
            "Everyone in this chat can now read the note",
            "I couldn't do that: there's no such note here",
        ),
        ("zh", "现在这里的所有人都能看到笔记“意面”。", "没能完成：没有找到这条笔记。"),
    ],
)
async def test_a_shared_note_is_told_in_the_language_of_the_button(
    direct: Rpc, group: Group, language: str, says: str, else_says: str
) -> None:
    notes, alice, sent = NoteStore(direct), group.turn(), Sent()
    note = await notes.create(alice, title="意面")
    worker = services(direct, sent, None)
    for id in (note.id, "note_aaaaaaaaaa"):
        yes = confirm(new_button_id())
        sharing = {"tool": SHARE_NOTE, "arguments": {"note_id": id}, "language": language}
        yes = replace(yes, payload={**yes.payload, **sharing})
        await handle_click(worker, pressed(yes, await show(direct, alice, yes), alice), 0)

    shared, refused = (content for _, _, content in sent.replies)
    assert says in shared
    assert else_says in refused
    assert (await notes.get(alice, note.id)).shared_chat_id == alice.chat_id


async def test_a_follow_up_is_answered_under_the_card_by_the_model(
    direct: Rpc, group: Group
) -> None:
    button, bob = follow_up("what next?"), group.turn("bob")
    card = await show(direct, group.turn("alice"), button)
    sent = Sent()
    worker = services(direct, sent, None)
    await handle_click(worker, pressed(button, card, bob), 0)

    ((target, _, content),) = sent.replies
    assert target == card
    asked, answer = json.loads(content)["body"]["elements"][:2]
    assert asked["text"]["content"].startswith("↪ ")
    assert "from the model" in answer["content"]
    rows = await worker.store.list_messages(bob.conversation_id, bob.user_id)
    assert (rows[0]["turn_id"], rows[0]["content"]) == (led_to(card, button), "what next?")


# What a model wrote on a button has not the authority of the person who presses it.


def obeying(request: Request) -> Any:
    """A model that lists the notes and then calls to delete every one."""
    results = [one for one in request.messages if one["role"] == "tool"]
    if not results:
        return [("list_notes", {})]
    if len(results) == 1:
        found = named_notes(results[0]["content"])
        return [("delete_note", {"note_id": id}) for _, id in found]
    return "I can delete them."


@pytest.fixture
async def asked_by_a_model(direct: Rpc, group: Group) -> Asked:
    """Bob pressed “Delete all my notes”, which a model had suggested to Alice."""
    sent, notes, bob = Sent(), NoteStore(direct), group.turn("bob")
    for title in ("意面", "Pizza"):
        await notes.create(bob, title=title)
    button = follow_up("Delete all my notes")
    card = await show(direct, group.turn("alice"), button)
    worker = services(direct, sent, None)
    stores = Stores(worker.store, notes)
    worker = replace(worker, manager=Manager(Acting(obeying), stores=stores))
    await handle_click(worker, pressed(button, card, bob), 0)
    return Asked(worker, sent, led_to(card, button))


@dataclass
class Asked:
    """A turn that a press began, and what it offers to confirm."""

    worker: Services
    sent: Sent
    turn: str

    @property
    def card(self) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads(self.sent.replies[-1][2]))

    async def press(self, place: int, who: AgentMemoryContext, event: str = "event") -> None:
        """Presses the button at `place` of the card that asks for the confirmations."""
        elements = json.loads(self.sent.replies[0][2])["body"]["elements"]
        shown = [element for element in elements if element["tag"] == "button"]
        value = shown[place]["behaviors"][0]["value"]
        rows = await self.worker.store.list_messages(who.conversation_id)
        [card] = [row["message_id"] for row in rows if row["turn_id"] == self.turn][1:]
        button = replace(follow_up(), id=value["b"])
        action = replace(pressed(button, card, who), event_id=event)
        await handle_click(self.worker, action, 0)

    async def titles(self, who: AgentMemoryContext) -> list[str]:
        return [note.title for note in await NoteStore(self.worker.rpc).list(who)]


async def test_a_press_on_what_a_model_wrote_deletes_nothing_and_shows_what_it_would(
    asked_by_a_model: Asked, group: Group
) -> None:
    assert await asked_by_a_model.titles(group.turn("bob")) == ["意面", "Pizza"]
    elements = asked_by_a_model.card["body"]["elements"]
    text = "".join(one["content"] for one in elements if one["tag"] == "markdown")
    assert "Shall I delete the note “意面” for good?" in text
    assert "Shall I delete the note “Pizza” for good?" in text
    labels = [one["text"]["content"] for one in elements if one["tag"] == "button"]
    assert labels == ["Confirm 1", "Cancel 1", "Confirm 2", "Cancel 2"]


async def test_it_is_confirmed_once_and_only_by_who_pressed(
    asked_by_a_model: Asked, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    for somebody in (alice, group.turn("carol")):
        await asked_by_a_model.press(0, somebody, event="theirs")
    assert await asked_by_a_model.titles(bob) == ["意面", "Pizza"]
    assert len(asked_by_a_model.sent.replies) == 1

    for event in ("once", "once", "twice"):
        await asked_by_a_model.press(0, bob, event=event)
    assert await asked_by_a_model.titles(bob) == ["Pizza"]
    assert len(asked_by_a_model.sent.replies) == 2
    assert "I deleted the note “意面”." in asked_by_a_model.sent.replies[-1][2]

    await asked_by_a_model.press(3, bob)
    await asked_by_a_model.press(2, bob)
    assert await asked_by_a_model.titles(bob) == ["Pizza"]
    opened = await asked_by_a_model.worker.store.begin_turn(
        bob, turn_id=group.message("next"), content="Q"
    )
    results = [call["result"] for row in opened.history for call in row.tool_calls]
    assert sum(str(one).startswith("Successfully deleted") for one in results) == 1


async def test_what_cannot_be_done_after_all_is_said(asked_by_a_model: Asked, group: Group) -> None:
    notes, bob = NoteStore(asked_by_a_model.worker.rpc), group.turn("bob")
    for note in await notes.list(bob):
        await asked_by_a_model.worker.store.items.forget(bob, "note", note.id)

    await asked_by_a_model.press(0, bob)

    assert "I couldn't do that: there's no such note here." in asked_by_a_model.sent.replies[-1][2]
