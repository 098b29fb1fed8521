"""Stores timers: reminders, digests and questions that wait for an answer.

Setting, listing and changing a timer uses the token of a turn; cancelling and firing are the
service's (`sql/functions/timers.sql`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from memory.models import Origin, OriginKind
from memory.rpc import Rpc, call_as
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, conversation_id, memory_context
from memory.text import as_json

Repeats = Literal["once", "daily", "weekdays", "weekly", "monthly"]
TimerKind = Literal["reminder", "digest", "proactive"]
REPEATS: tuple[Repeats, ...] = get_args(Repeats)
MOST_OF_A_PERSON = 20  # in one chat
MOST_OF_A_CHAT = 50
LONGEST_CONTENT = 1000
MOST_PEOPLE = 20
_HOLD_S = 300

MOST_DIGEST_MESSAGES = 400

ProactivePermission = Literal["claimed", "free", "no"]
_MOST_STATEMENTS = 20


@dataclass(frozen=True, slots=True)
class TimerPlan:
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
    plan: TimerPlan
    state: str = "active"
    kind: TimerKind = "reminder"


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
class TakenTimer:
    """A timer that is to be queued, for its time `due_ms`."""

    id: str
    due_ms: int


class TooManyTimers(Exception):
    """No more timers can be set: `whose` is "person" or "chat"."""

    def __init__(self, whose: str) -> None:
        super().__init__(whose)
        self.whose = whose


def timer_id(turn_id: str, plan: TimerPlan) -> str:
    """The id of a timer that a message asks for: the same however often the turn is repeated."""
    whole = json.dumps([turn_id, plan.row()])
    return f"tm_{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


class TimerStore:
    """Timers over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def set(self, context: AgentMemoryContext, turn_id: str, plan: TimerPlan) -> Timer:
        """Sets a timer, once. Raises `TooManyTimers`, and `TakenBack` where the message is gone."""
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
            raise TooManyTimers(whose)
        return timer_of_row(row)

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
        return tuple(map(timer_of_row, rows))

    async def change(
        self, context: AgentMemoryContext, id: str, plan: TimerPlan, turn_id: str = ""
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
        return timer_of_row(row) if row else None

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
        return timer_of_row(row) if row else None

    async def take_due(self, limit: int) -> tuple[TakenTimer, ...]:
        """Timers whose time has come and that nobody else queues for five minutes."""
        params = {"p_limit": limit, "p_hold_s": _HOLD_S}
        rows = await self._rpc.call("take_due_timers", params, None)
        return tuple(TakenTimer(**row) for row in rows)

    async def due(self, id: str, due_ms: int) -> DueTimer | None:
        """The timer, if this time of it is still to be done."""
        row = await self._rpc.call("due_timer", {"p_timer_id": id, "p_due_ms": due_ms}, None)
        return DueTimer(timer_of_row(row), row["now_ms"], row["asked_in"] or "") if row else None

    async def mark_fired(self, timer: Timer, next_ms: int | None) -> bool:
        """This time is over; the next is `next_ms`, None: there is none."""
        params = {"p_timer_id": timer.id, "p_due_ms": timer.plan.due_ms, "p_next_ms": next_ms}
        return bool(await self._rpc.call("timer_fired", params, None))

    async def inspect(
        self, *, chat_id: str | None, over: bool, limit: int
    ) -> tuple[Mapping[str, Any], ...]:
        """Rows for operators, those to come first; with `over` also those that are done."""
        params = {"p_chat_id": chat_id, "p_over": over, "p_limit": limit}
        return tuple(await self._rpc.call("inspect_timers", params, None))


def timer_of_row(row: Mapping[str, Any]) -> Timer:
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
    plan = TimerPlan(
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


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A message of the chat. `at_ms` is ms since epoch; `card`: `content` is a card's markdown."""

    message_id: str
    author: str
    author_id: str | None
    content: str
    at_ms: int
    card: bool


class DigestStore:
    """Digests over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def material(
        self, context: AgentMemoryContext, *, since: datetime, until: datetime, root: str | None
    ) -> tuple[DigestMessage, ...]:
        """What was said in the chat, or in the thread `root`, as far as it may be read there."""
        rows = await call_as(
            self._rpc,
            "digest_material",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_root_id=root,
            p_since=since.isoformat(),
            p_until=until.isoformat(),
            p_limit=MOST_DIGEST_MESSAGES,
        )
        return tuple(DigestMessage(**row) for row in rows)

    async def gone_ids(self, messages: Iterable[DigestMessage]) -> frozenset[str]:
        """The ids of those of `messages` that must not be told: they were taken back, or their
        author had the bot forget them since."""
        rows = [
            {"message_id": one.message_id, "author_id": one.author_id, "at_ms": one.at_ms}
            for one in messages
        ]
        params = {"p_messages": as_json(rows)}
        return frozenset(await self._rpc.call("messages_gone", params, None) if rows else ())

    async def schedule(self, context: AgentMemoryContext) -> Timer | None:
        row = await call_as(
            self._rpc,
            "get_digest",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
        )
        return timer_of_row(row) if row else None

    async def set_schedule(
        self, context: AgentMemoryContext, turn_id: str, plan: TimerPlan | None
    ) -> bool:
        """In place of any other; None: no more. Returns whether there was another. Raises
        `AccessDenied` unless the sender manages the chat."""
        params = {
            "p_conversation_id": conversation_id(context.chat_id, MAIN_ROOT),
            "p_tenant_key": context.tenant_key,
            "p_chat_id": context.chat_id,
            "p_chat_type": context.chat_type or "group",
            "p_person": context.actor_id,
            "p_turn_id": turn_id,
            "p_timer_id": timer_id(turn_id, plan) if plan else "",
            "p_timer": plan.row() if plan else None,
        }
        return bool(await self._rpc.call("set_digest", params, None))

    async def keep_sources(
        self, context: AgentMemoryContext, turn_id: str, sources: Iterable[DigestMessage]
    ) -> bool:
        """Before the digest is stored. False: one was taken back meanwhile, so it must not be."""
        rows = [{"message_id": one.message_id, "author_id": one.author_id} for one in sources]
        params = {
            "p_turn_id": turn_id,
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_sources": json.dumps(rows),
        }
        return bool(await self._rpc.call("keep_digest_sources", params, None))


class ProactiveStore:
    """What a chat's wish for proactive answers needs, over the memory's transports. `message_id` is
    that of the question."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def wait(
        self, context: AgentMemoryContext, message_id: str, text: str, asked_ms: int, due_ms: int
    ) -> None:
        """A question of the context's actor waits until `due_ms`, where its chat wants that."""
        asked_at = datetime.fromtimestamp(asked_ms / 1000, UTC)
        params = {
            "p_conversation_id": context.conversation_id,
            "p_tenant_key": context.tenant_key,
            "p_chat_id": context.chat_id,
            "p_root_id": context.root_id,
            "p_person": context.actor_id,
            "p_message_id": message_id,
            "p_content": text,
            "p_asked_at": f"{asked_at:%Y-%m-%dT%H:%M:%S}",
            "p_due_ms": due_ms,
        }
        await self._rpc.call("wait_for_answer", params, None)

    async def may_answer(
        self,
        context: AgentMemoryContext,
        message_id: str,
        *,
        since: datetime,
        most: int,
        claim: bool,
    ) -> ProactivePermission:
        """Whether the bot may answer: `claimed` before (with `claim`: from now on), of which there
        are at most `most` in the chat since `since`."""
        params = {
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_message_id": message_id,
            "p_since": since.isoformat(),
            "p_most": most,
            "p_claim": claim,
        }
        return cast(ProactivePermission, await self._rpc.call("may_answer_unasked", params, None))

    async def leave(self, context: AgentMemoryContext, message_id: str) -> None:
        """There was nothing to say after all."""
        params = {
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_message_id": message_id,
        }
        await self._rpc.call("leave_unanswered", params, None)

    async def stop(self, context: AgentMemoryContext) -> bool:
        """No more of it in the chat of the context; returns whether it was on."""
        params = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
        return bool(await self._rpc.call("stop_proactive", params, None))

    async def said_about(self, context: AgentMemoryContext, question: str) -> tuple[str, ...]:
        """What people told the bot in this chat that has most of the question, newest first."""
        rows = await call_as(
            self._rpc,
            "said_about",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_query=question,
            p_limit=_MOST_STATEMENTS,
        )
        return tuple(row["content"] for row in rows)
