"""Timers: reminders and digests, set in a conversation and shown there when their time comes.

Setting, listing and changing is done with the token of a turn; cancelling and what happens at the
time is the service's (`sql/functions/timers.sql`). Methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

from memory.origins import Kind as OriginKind
from memory.origins import Origin
from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext, ChatType, memory_context

Repeats = Literal["once", "daily", "weekdays", "weekly", "monthly"]
Kind = Literal["reminder", "digest", "proactive"]
REPEATS: tuple[Repeats, ...] = get_args(Repeats)

MOST_OF_A_PERSON = 20  # in one chat
MOST_OF_A_CHAT = 50
LONGEST = 1000
MOST_PEOPLE = 20
_HOLD_S = 300


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be said when, to whom.

    `local_at` is the wall clock in `zone` (an IANA name) from which it repeats; `due_ms` the next
    time, ms since epoch. `for_people` are open_ids; `for_all` means the chat, nobody in person.
    """

    content: str
    local_at: datetime
    zone: str
    due_ms: int
    repeats: Repeats = "once"
    for_people: tuple[str, ...] = ()
    for_all: bool = False
    language: str = "en"

    def row(self) -> str:
        return json.dumps(
            {
                "content": self.content,
                "local_at": f"{self.local_at:%Y-%m-%dT%H:%M}",
                "zone": self.zone,
                "due_ms": self.due_ms,
                "repeats": self.repeats,
                "for_people": self.for_people,
                "for_all": self.for_all,
                "language": self.language,
            },
            ensure_ascii=False,
        )


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer as it is stored: set in `context` by its actor, by the message `turn_id`."""

    id: str
    context: AgentMemoryContext
    turn_id: str
    plan: Plan
    state: str = "active"
    kind: Kind = "reminder"


@dataclass(frozen=True, slots=True)
class DueTimer:
    """A timer whose time has come; `now_ms` is the database's clock, ms since epoch. `asked_in` is
    the message that asked for it, "" where a button did."""

    timer: Timer
    now_ms: int
    asked_in: str = ""

    def origin(self) -> Origin:
        """Of the turn whose card this time of the timer shows."""
        kind: OriginKind = "digest" if self.timer.kind == "digest" else "reminder"
        return Origin(kind, self.timer.id, str(self.timer.plan.due_ms))


@dataclass(frozen=True, slots=True)
class Taken:
    """A timer that is to be queued, for its time `due_ms`."""

    id: str
    due_ms: int


class TooMany(Exception):
    """No more timers can be set: `whose` is "person" or "chat"."""

    def __init__(self, whose: str) -> None:
        super().__init__(whose)
        self.whose = whose


def timer_id(turn_id: str, plan: Plan) -> str:
    """The id of a timer that a message asks for: the same however often the turn is repeated."""
    whole = json.dumps([turn_id, plan.row()])
    return f"tm_{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


class TimerStore:
    """Timers over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def set(self, context: AgentMemoryContext, turn_id: str, plan: Plan) -> Timer:
        """Sets a timer, once. Raises `TooMany`, and `TakenBack` where the message is gone."""
        row = await call_as(
            self._rpc,
            "set_timer",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_root_id=context.root_id,
            p_chat_type=context.chat_type or "group",
            p_turn_id=turn_id,
            p_timer_id=timer_id(turn_id, plan),
            p_timer=plan.row(),
            p_most_person=MOST_OF_A_PERSON,
            p_most_chat=MOST_OF_A_CHAT,
        )
        if whose := row.get("refused"):
            raise TooMany(whose)
        return timer_of(row)

    async def list(self, context: AgentMemoryContext) -> tuple[Timer, ...]:
        """Those of the chat that are still to come, the next one first."""
        rows = await call_as(
            self._rpc,
            "list_timers",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_limit=MOST_OF_A_CHAT,
        )
        return tuple(map(timer_of, rows))

    async def change(
        self, context: AgentMemoryContext, id: str, plan: Plan, turn_id: str = ""
    ) -> Timer | None:
        """Changes a timer of the sender's for the message `turn_id`: if that is taken back, a timer
        whose text it changed goes. None: there is none of theirs that is still to come."""
        row = await call_as(
            self._rpc,
            "change_timer",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_timer_id=id,
            p_timer=plan.row(),
            **({"p_turn_id": turn_id} if turn_id else {}),
        )
        return timer_of(row) if row else None

    async def cancel(self, context: AgentMemoryContext, id: str) -> Timer | None:
        """The sender cancels a timer of this chat, or is left out of it. Returns it as it was;
        None: there is none. Raises `AccessDenied`."""
        params = {
            "p_timer_id": id,
            "p_tenant_key": context.tenant_key,
            "p_chat_id": context.chat_id,
            "p_person": context.actor_id,
        }
        row = await self._rpc.call("cancel_timer", params, None)
        return timer_of(row) if row else None

    async def take_due(self, limit: int) -> tuple[Taken, ...]:
        """Timers whose time has come and that nobody else queues for five minutes."""
        params = {"p_limit": limit, "p_hold_s": _HOLD_S}
        rows = await self._rpc.call("take_due_timers", params, None)
        return tuple(Taken(**row) for row in rows)

    async def due(self, id: str, due_ms: int) -> DueTimer | None:
        """The timer, if this time of it is still to be done."""
        row = await self._rpc.call("due_timer", {"p_timer_id": id, "p_due_ms": due_ms}, None)
        return DueTimer(timer_of(row), row["now_ms"], row["asked_in"] or "") if row else None

    async def fired(self, timer: Timer, next_ms: int | None) -> bool:
        """This time is over; the next is `next_ms`, None: there is none."""
        params = {"p_timer_id": timer.id, "p_due_ms": timer.plan.due_ms, "p_next_ms": next_ms}
        return bool(await self._rpc.call("timer_fired", params, None))

    async def inspect(
        self, *, chat_id: str | None, over: bool, limit: int
    ) -> tuple[Mapping[str, Any], ...]:
        """Rows for operators, those to come first; with `over` also those that are done."""
        params = {"p_chat_id": chat_id, "p_over": over, "p_limit": limit}
        return tuple(await self._rpc.call("inspect_timers", params, None))


def timer_of(row: Mapping[str, Any]) -> Timer:
    """A timer as the SQL functions give it."""
    chat_type: ChatType = "p2p" if row["chat_type"] == "p2p" else "group"
    context = memory_context(
        chat_id=row["chat_id"],
        root=row["root_id"],
        subject=row["user_id"],
        actor=row["actor_id"],
        tenant_key=row["tenant_key"],
        chat_type=chat_type,
    )
    plan = Plan(
        content=row["content"],
        local_at=datetime.fromisoformat(row["local_at"]),
        zone=row["zone"],
        due_ms=row["due_ms"],
        repeats=row["repeats"],
        for_people=tuple(row["for_people"]),
        for_all=row["for_all"],
        language=row["language"],
    )
    return Timer(row["id"], context, row["turn_id"], plan, row["state"], row["kind"])


def changed(plan: Plan, **what: Any) -> Plan:
    """`plan` with what is not None in `what`."""
    return replace(plan, **{key: value for key, value in what.items() if value is not None})
