"""Keeps the state of a chat’s conversation behind a store, and decides with a judge model whether
to answer.

A conversation is active from the bot's first delivered answer until nobody has written in the chat
for the timeout. The records stand in `bot.listening.transcript`, the rules in
`bot.listening.decisions`.

Models put the word in markdown or quotes, go on with reasons, or think aloud before it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from bot.listening.chat_rules import NOTHING_SPENT, BotBudget, Mode
from bot.listening.decisions import (
    Decision,
    IncomingMessage,
    Reason,
    decide,
    decide_start,
    records_before,
)
from bot.listening.transcript import MAX_MESSAGES, ChannelConversation, MessageRecord, transcript

__all__ = [
    "ChannelConversation",
    "ConversationManager",
    "ConversationStore",
    "Decision",
    "IncomingMessage",
    "Judge",
    "MessageRecord",
    "Reason",
    "ResponseDecider",
    "transcript",
]
JUDGE_SECONDS = 10.0  # a reasoning model thinks before it answers

_THOUGHTS_END = "</think>"
_YES = re.compile(
    r"[\W_]*(?:(?:final )?(?:answer|verdict|decision|答案|回答|判断|结论)"
    r"[\W_]*(?:is|是(?=[\W_]))?[\W_]*)?"
    r"(?:yes(?![a-z])|是(?!否|不是))",
    re.IGNORECASE,
)


class ConversationStore(Protocol):
    """Where conversations live, shared by all workers. Each method is one round trip.

    Every method is atomic per chat. Raises the memory's own errors when it is unavailable.
    """

    async def load(self, channel_id: str) -> ChannelConversation | None:
        """The chat's last started conversation that was not ended, however old."""

    async def begin(self, channel_id: str, now: int, seed: Sequence[MessageRecord]) -> None:
        """Start a conversation with these messages in place of any other. Keeps `quiet`."""

    async def append(
        self, channel_id: str, record: MessageRecord, *, active_since: int, keep: int
    ) -> ChannelConversation | None:
        """Apply `with_message` if the last activity is at `active_since` or later, else None."""

    async def go_on(
        self,
        channel_id: str,
        records: Sequence[MessageRecord],
        *,
        now: int,
        active_since: int,
        keep: int,
    ) -> ChannelConversation | None:
        """`append` these messages, or `begin` with them. May be applied later, or again."""

    async def remove(self, channel_id: str, message_id: str) -> None:
        """Leave the message out, after a recall."""

    async def finish(self, channel_id: str) -> None:
        """End the conversation: `load` gives None. Keeps `quiet`."""

    async def set_quiet(self, channel_id: str, quiet: bool) -> None:
        """Keep the chat's `quiet`, with or without a conversation."""


class ConversationManager:
    """The active conversations. `clock` gives ms since the epoch."""

    def __init__(
        self,
        store: ConversationStore,
        *,
        timeout_seconds: float = 120,
        clock: Callable[[], int],
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        self._store = store
        self._timeout_ms = int(timeout_seconds * 1000)
        self._clock = clock
        self._max_messages = max_messages

    async def get(self, channel_id: str, *, at: int | None = None) -> ChannelConversation | None:
        """The conversation that is active now, or was at `at` (a message's own time)."""
        conversation = await self._store.load(channel_id)
        if conversation and conversation.last_activity >= self._active_since(at):
            return conversation
        return None

    async def start(self, channel_id: str, seed: Sequence[MessageRecord] = ()) -> None:
        """Start a conversation from the chat's recent messages, oldest first."""
        await self._store.begin(channel_id, self._clock(), seed[-self._max_messages :])

    async def record_message(
        self, channel_id: str, record: MessageRecord
    ) -> ChannelConversation | None:
        """Record a message of the chat; None, and nothing kept, when no conversation is active."""
        return await self._append(channel_id, record, at=record.timestamp)

    async def record_bot_response(
        self, channel_id: str, record: MessageRecord
    ) -> ChannelConversation | None:
        """Record an answer that was delivered; it opens the follow-up window."""
        return await self._append(channel_id, replace(record, ours=True), at=self._clock())

    async def go_on(
        self, channel_id: str, seed: Sequence[MessageRecord], record: MessageRecord
    ) -> ChannelConversation | None:
        """Record an answer that was delivered where no conversation was known to be active: it
        starts one from `seed`, unless there is one after all."""
        now = self._clock()
        records = (*seed, replace(record, ours=True))[-self._max_messages :]
        active_since = self._active_since(now)
        return await self._store.go_on(
            channel_id, records, now=now, active_since=active_since, keep=self._max_messages
        )

    async def forget_message(self, channel_id: str, message_id: str) -> None:
        """Take a recalled message out."""
        await self._store.remove(channel_id, message_id)

    async def end(self, channel_id: str) -> None:
        """End the conversation of the chat, if any."""
        await self._store.finish(channel_id)

    async def quieten(self, channel_id: str) -> None:
        """End the conversation and keep to explicit triggers until `resume`."""
        await self._store.set_quiet(channel_id, True)
        await self._store.finish(channel_id)

    async def resume(self, channel_id: str) -> None:
        """Follow conversations again."""
        await self._store.set_quiet(channel_id, False)

    async def _append(
        self, channel_id: str, record: MessageRecord, *, at: int
    ) -> ChannelConversation | None:
        active_since = self._active_since(at)
        return await self._store.append(
            channel_id, record, active_since=active_since, keep=self._max_messages
        )

    def _active_since(self, at: int | None) -> int:
        return (self._clock() if at is None else at) - self._timeout_ms


class Judge(Protocol):
    """A model that reads the recent messages and the new one and answers YES or NO, 是 or 否."""

    def __call__(
        self, recent: Sequence[MessageRecord], message: IncomingMessage
    ) -> Awaitable[str]: ...


class Answer(NamedTuple):
    """A decision in short."""

    respond: bool
    reason: str


class ResponseDecider:
    """Decides at both points: no conversation yet, and a conversation that goes on."""

    def __init__(
        self,
        bot_open_id: str,
        followup_window_seconds: float = 60,
        judge: Judge | None = None,
        *,
        judge_seconds: float = JUDGE_SECONDS,
    ) -> None:
        self._bot_open_id = bot_open_id
        self._window_ms = int(followup_window_seconds * 1000)
        self._judge = judge
        self._judge_seconds = judge_seconds

    async def should_start_conversation(
        self, message: IncomingMessage, budget: BotBudget | None = NOTHING_SPENT
    ) -> Answer:
        """Whether a message outside any conversation is for the bot."""
        decision = decide_start(message, self._bot_open_id, budget)
        return Answer(decision.respond, decision.reason)

    async def should_respond(
        self,
        message: IncomingMessage,
        conversation: ChannelConversation,
        budget: BotBudget | None = NOTHING_SPENT,
    ) -> Answer:
        """Whether a message of an active conversation is for the bot."""
        decision = await self.decide(message, conversation, budget)
        return Answer(decision.respond, decision.reason)

    async def decide(
        self,
        message: IncomingMessage,
        conversation: ChannelConversation | None,
        budget: BotBudget | None = NOTHING_SPENT,
        mode: Mode = "follow",
    ) -> Decision:
        """Either of the two, with all that the decision log wants."""
        if conversation is None:
            return decide_start(message, self._bot_open_id, budget, mode)
        bot = self._bot_open_id
        decision = decide(message, conversation, bot, self._window_ms, budget, mode)
        if self._judge is None or not decision.is_open:
            return decision
        return await self._ask_judge(self._judge, message, conversation, decision)

    async def _ask_judge(
        self,
        judge: Judge,
        message: IncomingMessage,
        conversation: ChannelConversation,
        so_far: Decision,
    ) -> Decision:
        start_s = time.monotonic()
        try:
            async with asyncio.timeout(self._judge_seconds):
                answer = await judge(records_before(message, conversation.messages), message)
            verdict = "yes" if means_yes(answer) else "no"
        except TimeoutError:
            verdict = "timeout"
        except Exception:  # noqa: BLE001  whatever a judge does wrong, the bot keeps silent
            verdict = "error"
        return replace(
            so_far,
            respond=verdict == "yes",
            reason=Reason.LLM_JUDGE,
            tier="judge",
            verdict=verdict,
            judge_ms=int((time.monotonic() - start_s) * 1000),
        )


def means_yes(answer: str) -> bool:
    """Whether the first word after all thoughts is YES or 是."""
    return bool(_YES.match(answer.rpartition(_THOUGHTS_END)[2]))
