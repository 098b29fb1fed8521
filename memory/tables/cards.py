"""Stores cards while they are written, their buttons and presses, and cards to be withdrawn.

A button belongs to its chat; what it does is kept here and never travels in the card. Feishu
wants every operation on a card to have a greater `sequence` than the one before, so whoever
works on a card gets a block of numbers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from memory.models import Origin, OriginKind
from memory.rpc import Rpc, call_as
from memory.scope import (
    MAIN_ROOT,
    AgentMemoryContext,
    ChatType,
    context_of_row,
    memory_context,
    split_conversation_id,
)

_AT_A_TIME = 20
_ANSWERS = "of:"
_MOST_LEFT = 20  # cards that one worker takes at a time

ButtonKind = Literal["follow_up", "confirm", "show", "share", "stop"]
PressVerdict = Literal["accepted", "used", "expired", "not_yours", "over", "unknown"]
BUTTON_ID_LENGTH = 22

Handle = Literal["helpful", "unhelpful", "again"]
TouchVerdict = Literal["thanks", "taken_back", "accepted", "used", "not_yours", "unknown"]


@dataclass(frozen=True, slots=True)
class OpenCard:
    """A CardKit card that answers `reply_to`. `numbers` are the sequence numbers to use.

    `message_id` is the message that shows it: None while it is not known to be sent. `in_thread`
    is how the reply was asked for.
    """

    turn_id: str
    context: AgentMemoryContext
    card_id: str
    reply_to: str
    in_thread: bool
    numbers: range
    message_id: str | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> OpenCard:
        """A card as the database gives it."""
        return cls(
            turn_id=row["turn_id"],
            context=context_of_row(row),
            card_id=row["card_id"],
            reply_to=row["reply_to"],
            in_thread=row["in_thread"],
            numbers=range(row["first"], row["sequence"] + 1),
            message_id=row["message_id"],
        )


class CardStore:
    """Cards over the memory's transports. Each method is one round trip and raises `StoreError`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def keep(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        card_id: str,
        reply_to: str,
        in_thread: bool,
        stop_id: str | None = None,
    ) -> OpenCard:
        """Keeps a new card of an open turn, with the id of the button that stops it.

        Returned is the card that counts, an earlier one if the turn has any. Raises `TurnUnknown`
        when the turn is over.
        """
        params = {
            "p_card_id": card_id,
            "p_reply_to": reply_to,
            "p_in_thread": in_thread,
            "p_stop_id": stop_id,
        }
        return OpenCard.from_row(await self._call("keep_card", context, turn_id, params))

    async def resume(self, context: AgentMemoryContext, *, turn_id: str) -> OpenCard | None:
        """The card that an earlier attempt left unfinished, with numbers above all it used."""
        row = await self._call("resume_card", context, turn_id, {})
        return OpenCard.from_row(row) if row else None

    async def mark_shown(self, card: OpenCard, message_id: str) -> None:
        """The card is shown by `message_id` and goes on."""
        await self._note(card, message_id, streaming=True)

    async def mark_finished(self, card: OpenCard) -> None:
        """The card is finished, or was given up: nobody goes on with it."""
        await self._note(card, None, streaming=False)

    async def take_left(self, *, older_s: int, untouched_s: int) -> tuple[OpenCard, ...]:
        """For the service: cards that were opened `older_s` ago or earlier and that nobody has
        worked on for `untouched_s`. Other workers do not get them meanwhile."""
        ages = {"p_older_s": older_s, "p_untouched_s": untouched_s, "p_limit": _MOST_LEFT}
        return tuple(map(OpenCard.from_row, await self._rpc.call("take_left_cards", ages, None)))

    async def _note(self, card: OpenCard, message_id: str | None, *, streaming: bool) -> None:
        params = {"p_message_id": message_id, "p_streaming": streaming}
        await self._call("note_card", card.context, card.turn_id, params)

    async def _call(
        self,
        function: str,
        context: AgentMemoryContext,
        turn_id: str,
        params: Mapping[str, object],
    ) -> Any:
        return await call_as(self._rpc, function, context, p_turn_id=turn_id, **params)


@dataclass(frozen=True, slots=True)
class DueWithdrawal:
    """Something to withdraw: a card of ours (`id`) in a chat; `of_one` may be shown to one person
    beside another. With `question`: the cards that answer this message and were sent at `since_ms`
    (ms since epoch) or later, which nobody reported. `chats`: where a card may stand, for the turn
    that named it may have lied. `age_s`: for how long that is known."""

    id: str
    chat_id: str
    chats: tuple[str, ...]
    age_s: float
    since_ms: int
    of_one: bool

    @property
    def question(self) -> str:
        return self.id.removeprefix(_ANSWERS) if self.id.startswith(_ANSWERS) else ""


class Withdrawals:
    """What is still to be withdrawn, over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def take(self) -> tuple[DueWithdrawal, ...]:
        """Some that are due; each is due again later unless `done` is called."""
        rows = await self._rpc.call("take_due_withdrawals", {"p_limit": _AT_A_TIME}, None)
        return tuple(
            DueWithdrawal(
                row["message_id"],
                row["chat_id"],
                tuple(row["chats"]),
                float(row["age_s"]),
                row["since_ms"],
                row["of_one"],
            )
            for row in rows
        )

    async def drop(self, due: DueWithdrawal) -> None:
        """Nothing more is to be done about it."""
        await self._rpc.call("drop_withdrawal", {"p_message_id": due.id}, None)

    async def forget_turns(self) -> int:
        """Turns that forgot something and are over keep no words; returns how many."""
        return int(await self._rpc.call("drop_forgetting_turns", {}, None))


def new_button_id() -> str:
    """128 random bits as 22 characters of base64url."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class NewButton:
    """A button to be stored. Of the buttons with one `group_id` only the first press counts.

    A `follow_up` is for everyone in the chat and asks its label; all others are for the person who
    asked: a `confirm` lets a tool act, a `show` asks for a private answer, a `share` publishes it.
    A `stop` is kept with the card of an answer that is being written (`memory.tables.cards`).
    `payload` is JSON; `lives_s` in seconds; `danger`: it looks like what cannot be undone.
    """

    label: str
    kind: ButtonKind
    payload: Mapping[str, Any]
    chat_type: ChatType
    lives_s: int
    group_id: str = field(default_factory=new_button_id)
    id: str = field(default_factory=new_button_id)
    danger: bool = False

    def row(self) -> dict[str, Any]:
        """As it is kept; how it looks is not."""
        return {name: value for name, value in asdict(self).items() if name != "danger"}


@dataclass(frozen=True, slots=True)
class Click:
    """A press of a button as Feishu reports it: by whom, on which card, in which chat."""

    button_id: str
    chat_id: str
    message_id: str
    operator_id: str
    tenant_key: str
    event_id: str


@dataclass(frozen=True, slots=True)
class PressResult:
    """What became of a click. All but `verdict` is empty unless it was accepted.

    `user_id` and `actor_id` are the subject and the sender of the turn that showed the button,
    which is `turn_id`.
    """

    verdict: PressVerdict
    kind: ButtonKind | None = None
    label: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    conversation_id: str = ""
    chat_type: str = ""
    user_id: str = ""
    actor_id: str = ""
    turn_id: str = ""

    def origin(self, click: Click) -> Origin:
        """Of the turn that the click leads to: however often it is pressed, there is one; of a
        button that can be pressed again, each click its own. What shares can be, where it was
        refused."""
        kind: OriginKind = "private_answer" if self.kind == "show" else "button"
        again = self.payload.get("again") or self.kind == "share"
        cause = click.event_id if again else click.button_id
        return Origin(kind, self.turn_id, cause)

    @property
    def chat_id(self) -> str:
        """The chat of the conversation. The card may stand beside another one."""
        return split_conversation_id(self.conversation_id)[0]

    @property
    def root_id(self) -> str:
        """The root of the conversation, `main` outside threads."""
        return split_conversation_id(self.conversation_id)[1]


@dataclass(frozen=True, slots=True)
class PendingConfirmation:
    """An action that waits for a confirmation: the ids of its buttons, and of the card."""

    confirm: str
    cancel: str
    message_id: str


class ButtonStore:
    """Buttons over the memory's transports, with the token of the person who clicks.

    All methods are one round trip and raise `StoreError`.
    """

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def look(self, click: Click) -> PressResult:
        """What `press` would give; changes nothing."""
        return await self._call(click, only_look=True)

    async def press(self, click: Click) -> PressResult:
        """Presses the button. The same click again gives the same answer."""
        return await self._call(click, only_look=False)

    async def pending(
        self, asker: AgentMemoryContext, *, event_id: str, card_id: str = ""
    ) -> PendingConfirmation | None:
        """Returns the one action that waits for the asker's confirmation in this conversation, on
        the card `card_id` if given. None if there is none, or several. `event_id` is what may
        press it; an action that it has pressed already is still returned."""
        params = {
            "p_conversation_id": asker.conversation_id,
            "p_actor_id": asker.actor_id,
            "p_tenant_key": asker.tenant_key,
            "p_event_id": event_id,
            "p_card_id": card_id,
        }
        row = await self._rpc.call("pending_confirmation", params, asker)
        return PendingConfirmation(**row) if row else None

    async def release_share(self, turn_id: str) -> None:
        """The press that began this turn shared nothing: the button can be pressed again."""
        await self._rpc.call("release_share", {"p_turn_id": turn_id}, None)

    async def _call(self, click: Click, *, only_look: bool) -> PressResult:
        presser = memory_context(
            chat_id=click.chat_id,
            root=MAIN_ROOT,
            subject=click.operator_id,
            actor=click.operator_id,
            tenant_key=click.tenant_key,
        )
        params = {f"p_{name}": value for name, value in asdict(click).items()}
        row = await self._rpc.call(
            "press_button", {**params, "p_only_look": only_look, "p_with_turn": True}, presser
        )
        return PressResult(**row)


@dataclass(frozen=True, slots=True)
class HandleTouch:
    """A press as Feishu reports it: by whom, on which card, in which chat."""

    handle: Handle
    chat_id: str
    message_id: str
    operator_id: str
    tenant_key: str


@dataclass(frozen=True, slots=True)
class TouchResult:
    """What became of it. For `again`: the turn of the card, what is asked in it, and when that was
    written, ms since the epoch. `is_unanswered`: the card says that there is no answer."""

    verdict: TouchVerdict
    turn_id: str = ""
    conversation_id: str = ""
    subject: str = ""
    chat_type: str | None = ""
    question: str | None = ""
    asked_ms: int | None = None
    is_unanswered: bool = False

    def origin(self) -> Origin:
        """Of the turn that `again` leads to."""
        return Origin("again", self.turn_id)


class HandleStore:
    """Each method is one round trip and raises `StoreError`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def press(self, touch: HandleTouch) -> TouchResult:
        """Keeps feedback; of `again` only says what it would lead to."""
        presser = memory_context(
            chat_id=touch.chat_id,
            root=MAIN_ROOT,
            subject=touch.operator_id,
            actor=touch.operator_id,
            tenant_key=touch.tenant_key,
        )
        params = {f"p_{name}": value for name, value in asdict(touch).items()}
        return TouchResult(**await self._rpc.call("press_handle", params, presser))

    async def react(
        self, message_id: str, open_id: str, tenant_key: str, *, helpful: bool, is_withdrawn: bool
    ) -> TouchVerdict:
        """For the service, since the event names no chat: a reaction, or that it is
        `is_withdrawn`."""
        params = {
            "p_message_id": message_id,
            "p_open_id": open_id,
            "p_tenant_key": tenant_key,
            "p_helpful": helpful,
            "p_gone": is_withdrawn,
        }
        row = await self._rpc.call("note_reaction", params, None)
        verdict: TouchVerdict = row["verdict"] if row else "unknown"
        return verdict

    async def card_to_redraw(self, message_id: str, tenant_key: str) -> Mapping[str, Any] | None:
        """For the service: a card of an answer with its buttons, as it is to be drawn now."""
        params = {"p_message_id": message_id, "p_tenant_key": tenant_key}
        row: Mapping[str, Any] | None = await self._rpc.call("card_to_redraw", params, None)
        return row
