"""Conversations of chats over the memory's SQL functions; one round trip each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from bot.listening.chat_rules import BotBudget, ChatRules, rules_of
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.transcript import (
    KEPT_CHARACTERS,
    MAX_MESSAGES,
    ChannelConversation,
    HeldTranscript,
    HeldTranscripts,
    MessageRecord,
)
from memory.rpc import Rpc, Statement, can_join
from memory.scope import AgentMemoryContext
from memory.text import as_json

NOTHING_HELD = HeldTranscript()
NO_TOPICS: Mapping[str, int] = MappingProxyType({})

MOST_BYTES = 500_000  # the functions take twice that, for records that stand in other JSON

_FIELDS = tuple(field.name for field in fields(MessageRecord))


@dataclass(frozen=True, slots=True)
class PastDecision:
    """A stored decision on a message of `actor_id` ("" when that person is forgotten). `words`: how
    the message begins, as far as it is kept. `outcome`, `outcome_reason`: how its
    turn ended, and a code for why; "" while it has not."""

    message_id: str
    actor_id: str
    respond: bool
    reason: str
    cue: str | None
    since_bot_ms: int | None
    verdict: str | None
    at_ms: int
    words: str = ""
    outcome: str = ""
    outcome_reason: str = ""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides on a message beside itself: the chat's rules, and its conversation if one is on.
    `decided`: the decision that was stored with the reading of them; None: none was."""

    rules: ChatRules
    conversation: ChannelConversation | None = None
    decided: Decision | None = None


class ChatConversations:
    """A `ConversationStore` with the token of one message: only its own chat is reachable.
    `transcripts`: what the worker holds; without them everything is told each time."""

    def __init__(
        self,
        rpc: Rpc,
        context: AgentMemoryContext,
        transcripts: HeldTranscripts | None = None,
    ) -> None:
        self._rpc = rpc
        self._context = context
        self._transcripts = transcripts or HeldTranscripts()

    async def load(self, channel_id: str) -> ChannelConversation | None:
        return conversation_of(await self._call("load_conversation", channel_id, p_topics=True))

    async def begin(self, channel_id: str, now: int, seed: Sequence[MessageRecord]) -> None:
        await self._call(
            "begin_conversation",
            channel_id,
            p_tenant_key=self._context.tenant_key,
            p_now=now,
            p_records=_dump(seed),
        )

    async def append(
        self, channel_id: str, record: MessageRecord, *, active_since: int, keep: int
    ) -> ChannelConversation | None:
        row = await self._call(
            "append_to_conversation",
            channel_id,
            p_tenant_key=self._context.tenant_key,
            p_records=_dump([record]),
            p_at=record.timestamp,
            p_active_since=active_since,
            p_keep=keep,
            p_topics=True,
        )
        return conversation_of(row)

    async def go_on(
        self,
        channel_id: str,
        records: Sequence[MessageRecord],
        *,
        now: int,
        active_since: int,
        keep: int,
    ) -> ChannelConversation | None:
        row = await self._call(
            "continue_conversation",
            channel_id,
            p_tenant_key=self._context.tenant_key,
            p_records=_dump(records),
            p_now=now,
            p_active_since=active_since,
            p_keep=keep,
        )
        return conversation_of(row)

    async def remove(self, channel_id: str, message_id: str) -> None:
        await self._call("remove_from_conversation", channel_id, p_message_id=message_id)

    async def finish(self, channel_id: str) -> None:
        await self._call("finish_conversation", channel_id)

    async def set_quiet(self, channel_id: str, quiet: bool) -> None:
        await self._call(
            "set_chat_quiet", channel_id, p_tenant_key=self._context.tenant_key, p_quiet=quiet
        )

    async def log_decision(
        self,
        message: IncomingMessage,
        decision: Decision,
        topics: Mapping[str, int] = NO_TOPICS,
    ) -> Decision:
        """Stores a decision, with the topics that were found (message id → topic), and returns the
        one that holds: the first made on this message."""
        transcript, _ = await self.log_decision_and(message, decision, topics)
        return transcript

    async def log_decision_and(
        self,
        message: IncomingMessage,
        decision: Decision,
        topics: Mapping[str, int],
        then: Statement | None = None,
    ) -> tuple[Decision, object]:
        """The same, and the result of `then`, which runs in that transaction if the transport can
        do so; else None."""
        row, result = await self._call_and(
            "log_decision",
            then,
            p_actor_id=self._context.actor_id,
            **decision_args(message, decision),
            **_topic_args(topics),
        )
        return _apply_row(decision, row), result

    async def hear(
        self,
        message: IncomingMessage,
        settings: object,
        *,
        timeout_ms: int | None,
        likely: Decision | None = None,
        then: Statement | None = None,
    ) -> tuple[Circumstances, object]:
        """Records a message in the conversation of its chat, and reads what decides on it.

        `timeout_ms`: how long a conversation stays on; None: nothing is recorded. `likely` is the
        decision where none is on, in a chat without rules of its own: then it is stored. The result
        of `then` as with `log_decision_and`.
        """
        args: dict[str, object] = {"p_actor_id": self._context.actor_id}
        transcript = self._transcripts.of(self._context.tenant_key, self._context.chat_id)
        if timeout_ms is not None:
            args |= heard_args(message.record(), timeout_ms, transcript)
        if likely:
            args["p_decision"] = as_json(decision_args(message, likely))
            args["p_mode"] = rules_of(None, settings).mode
        row, result = await self._call_and("hear_message", then, **args)
        return Circumstances(
            rules_of(row["rules"], settings),
            self._conversation(transcript, row["conversation"]),
            _apply_row(likely, row["decided"]) if likely and row["decided"] else None,
        ), result

    def _conversation(
        self, transcript: HeldTranscript, row: Mapping[str, Any] | None
    ) -> ChannelConversation | None:
        """The conversation that was told in short to the holder of `transcript`; None when none is
        on."""
        if row is None:
            return None
        return self._transcripts.conversation(self._context.tenant_key, transcript, row)

    async def bot_budget(self, message: IncomingMessage) -> BotBudget:
        """Notes another bot's message to this one, and returns what bots are answered from.

        The same message gets the same budget again, and two messages never the same answer.
        """
        row = await self._call(
            "note_bot_message",
            self._context.chat_id,
            p_tenant_key=self._context.tenant_key,
            p_message_id=message.message_id,
            p_bot_id=message.author_id,
            p_at=message.timestamp,
        )
        answers = tuple((one["bot_id"], one["at"]) for one in row["answers"])
        return BotBudget(answers, row["request_ms"], row["shared"], row["unasked"])

    async def last_decision(
        self, *, root_id: str | None = None, message_id: str | None = None
    ) -> PastDecision | None:
        """The last decision in the chat, in a thread of it, or on one message."""
        row = await self._call(
            "last_decision",
            self._context.chat_id,
            p_tenant_key=self._context.tenant_key,
            p_root_id=root_id,
            p_message_id=message_id,
        )
        return PastDecision(**row) if row else None

    async def rules(self, settings: object) -> ChatRules:
        """The rules of the chat; what it does not set is as `settings` say."""
        tenant = self._context.tenant_key
        row = await self._call("get_chat_rules", self._context.chat_id, p_tenant_key=tenant)
        return rules_of(row, settings)

    async def set_rule(self, name: str, value: str) -> None:
        """Changes one rule; "" gives it back to the settings. Raises `AccessDenied`."""
        await self._call(
            "set_chat_rule",
            self._context.chat_id,
            p_tenant_key=self._context.tenant_key,
            p_name=name,
            p_value=value,
        )

    async def is_managed(self) -> bool:
        """Whether whom the context is of manages the chat, as far as the memory was told lately."""
        tenant = self._context.tenant_key
        return bool(await self._call("manages_chat", self._context.chat_id, p_tenant_key=tenant))

    async def is_quiet(self) -> bool:
        """Whether the chat keeps the bot to explicit triggers, with or without a conversation."""
        return bool(await self._call("chat_is_quiet", self._context.chat_id))

    async def has_answered_in(self, root_id: str) -> bool:
        """Whether the bot has answered in that thread of the chat."""
        return bool(await self._call("has_answered_in", self._context.chat_id, p_root_id=root_id))

    async def _call_and(
        self, function: str, then: Statement | None, **params: object
    ) -> tuple[Any, object]:
        """The results of a function of this chat and of `then`, None if that was not run."""
        context = self._context
        args = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key, **params}
        if then and can_join(self._rpc):
            return await self._rpc.call_and(function, args, context, then)
        return await self._rpc.call(function, args, context), None

    async def _call(self, function: str, channel_id: str, **params: object) -> Any:
        return await self._rpc.call(function, {"p_chat_id": channel_id, **params}, self._context)


def _apply_row(decision: Decision, row: Mapping[str, Any] | None) -> Decision:
    """The decision that holds, by the row of `log_decision`."""
    if not row:
        return decision
    return replace(decision, respond=row["respond"], reason=Reason(row["reason"]))


def decision_args(message: IncomingMessage, decision: Decision) -> dict[str, object]:
    """The arguments of the SQL function `log_decision`, beside chat, tenant and sender."""
    return {
        "p_message_id": message.message_id,
        "p_respond": decision.respond,
        "p_reason": decision.reason.value,
        "p_tier": decision.tier,
        "p_cue": decision.cue.value if decision.cue else None,
        "p_since_bot_ms": decision.since_bot_ms,
        "p_verdict": decision.verdict,
        "p_judge_ms": decision.judge_ms,
        "p_root_id": message.root_id,
        "p_request_ms": message.timestamp if message.is_request else None,
        "p_shared": message.mentions_bots and message.is_request and message.is_explicit,
    }


def heard_args(
    record: MessageRecord,
    timeout_ms: int,
    transcript: HeldTranscript = NOTHING_HELD,
    before: Sequence[MessageRecord] = (),
) -> dict[str, object]:
    """The arguments of `append_to_conversation`, beside chat and tenant. `transcript`: what the
    worker has of the transcript, of which it is told the rest. `before`: what is to be stored with
    it where no conversation is on."""
    return {
        **({"p_held": as_json(transcript.mark)} if transcript.mark else {}),
        **({"p_before": _dump(before)} if before else {}),
        "p_records": _dump([record]),
        "p_at": record.timestamp,
        "p_active_since": record.timestamp - timeout_ms,
        "p_keep": MAX_MESSAGES,
    }


def tell_conversation_args(
    records: Sequence[MessageRecord],
    now: int,
    timeout_ms: int,
    topics: Mapping[str, int] = NO_TOPICS,
) -> dict[str, object]:
    """The arguments of `tell_conversation`, beside chat and tenant; `now` is ms since epoch,
    `topics` those that were found (message id → topic)."""
    return {
        "p_records": _dump(records[-MAX_MESSAGES:]),
        "p_now": now,
        "p_active_since": now - timeout_ms,
        "p_keep": MAX_MESSAGES,
        **_topic_args(topics),
    }


def conversation_of(row: Mapping[str, Any] | None) -> ChannelConversation | None:
    """A conversation as the SQL functions give it at length; None when none is on."""
    if not row:
        return None
    messages = tuple(MessageRecord(**message) for message in row["messages"])
    return ChannelConversation(**{**row, "messages": messages})


def _topic_args(topics: Mapping[str, int]) -> dict[str, object]:
    return {"p_topics": as_json(dict(topics))} if topics else {}


def _dump(records: Sequence[MessageRecord]) -> str:
    """The records as the store takes them: their beginnings, and the newest if that is too much."""
    rows = [
        {name: getattr(record, name) for name in _FIELDS}
        | {"content": record.content[:KEPT_CHARACTERS]}
        for record in records
    ]
    while len((text := as_json(rows)).encode()) > MOST_BYTES:
        rows = rows[len(rows) // 2 + 1 :]
    return text
