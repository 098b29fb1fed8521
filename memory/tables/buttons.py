"""Buttons under cards: stored with the reply they belong to, pressed once.

A button belongs to its chat; what it does is kept here and never travels in the card. Storing is
part of `MemoryStore.record_reply`; here are the rows and the press.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from memory.origins import Kind, Origin
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, memory_context, place_of

ButtonKind = Literal["follow_up", "confirm", "show", "share", "stop"]
Verdict = Literal["accepted", "used", "expired", "not_yours", "over", "unknown"]

ID_LENGTH = 22


def new_id() -> str:
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
    group_id: str = field(default_factory=new_id)
    id: str = field(default_factory=new_id)
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
class Press:
    """What became of a click. All but `verdict` is empty unless it was accepted.

    `user_id` and `actor_id` are the subject and the sender of the turn that showed the button,
    which is `turn_id`.
    """

    verdict: Verdict
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
        kind: Kind = "private_answer" if self.kind == "show" else "button"
        again = self.payload.get("again") or self.kind == "share"
        cause = click.event_id if again else click.button_id
        return Origin(kind, self.turn_id, cause)

    @property
    def chat_id(self) -> str:
        """The chat of the conversation. The card may stand beside another one."""
        return place_of(self.conversation_id)[0]

    @property
    def root_id(self) -> str:
        """The root of the conversation, `main` outside threads."""
        return place_of(self.conversation_id)[1]


@dataclass(frozen=True, slots=True)
class Pending:
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

    async def look(self, click: Click) -> Press:
        """What `press` would give; changes nothing."""
        return await self._call(click, only_look=True)

    async def press(self, click: Click) -> Press:
        """Presses the button. The same click again gives the same answer."""
        return await self._call(click, only_look=False)

    async def pending(
        self, asker: AgentMemoryContext, *, event_id: str, card_id: str = ""
    ) -> Pending | None:
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
        return Pending(**row) if row else None

    async def release_share(self, turn_id: str) -> None:
        """The press that began this turn shared nothing: the button can be pressed again."""
        await self._rpc.call("release_share", {"p_turn_id": turn_id}, None)

    async def _call(self, click: Click, *, only_look: bool) -> Press:
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
        return Press(**row)
