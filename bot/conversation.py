"""The conversation of a chat: what was said lately, and whether the bot speaks.

A conversation is active from the bot's first delivered answer until nobody has written in the chat
for the timeout. `decide` is pure; `ResponseDecider` adds the judge model, `ConversationManager`
the store. All times are milliseconds since the epoch, as in Feishu's events.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from bot.cues import Cue, Exchange, cue_of

MAX_MESSAGES = 200
BOT_TURN_LIMIT = 10
JUDGE_SECONDS = 3.0
CLIP_CHARACTERS = 2000
NAMELESS = "someone"


@dataclass(frozen=True)
class MessageRecord:
    """A message as the conversation keeps it.

    `ours` says that this bot wrote it: Feishu's list names the app, not the bot's open_id.
    `root_id` is the thread's root, if in a thread.
    """

    author: str
    author_id: str
    content: str
    timestamp: int
    is_bot: bool
    message_id: str = ""
    root_id: str | None = None
    ours: bool = False


@dataclass(frozen=True)
class ChannelConversation:
    """The active conversation of a chat, its messages oldest first.

    `quiet` keeps the bot to explicit triggers; it belongs to the chat and outlives the
    conversation.
    """

    channel_id: str
    started_at: int
    last_activity: int
    messages: tuple[MessageRecord, ...] = ()
    quiet: bool = False

    @property
    def participants(self) -> dict[str, str]:
        """open_id → name of everybody who wrote."""
        return {message.author_id: message.author for message in self.messages}

    @property
    def last_bot_at(self) -> int | None:
        """When this bot spoke last."""
        return max((message.timestamp for message in self.messages if message.ours), default=None)

    @property
    def llm_history(self) -> tuple[dict[str, str], ...]:
        """The messages as a model takes them: role and content, people labelled."""
        return tuple(
            {"role": "assistant", "content": message.content}
            if message.ours
            else {"role": "user", "content": labelled(message)}
            for message in self.messages
        )

    def with_message(
        self, record: MessageRecord, *, keep: int = MAX_MESSAGES
    ) -> "ChannelConversation":
        """The conversation after `record`; unchanged if its message_id is already there.

        Messages stand in the order of their timestamps, the newest `keep` of them. Activity never
        goes back, however late a message is delivered.
        """
        if record.message_id and any(m.message_id == record.message_id for m in self.messages):
            return self
        ordered = sorted((*self.messages, record), key=lambda message: message.timestamp)
        return replace(
            self,
            messages=tuple(ordered[-keep:]),
            last_activity=max(self.last_activity, record.timestamp),
        )

    def without_message(self, message_id: str) -> "ChannelConversation":
        """The conversation after a recall."""
        kept = tuple(message for message in self.messages if message.message_id != message_id)
        return replace(self, messages=kept)


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

    async def remove(self, channel_id: str, message_id: str) -> None:
        """Apply `without_message`."""

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
        since = self._active_since(at)
        return await self._store.append(
            channel_id, record, active_since=since, keep=self._max_messages
        )

    def _active_since(self, at: int | None) -> int:
        return (self._clock() if at is None else at) - self._timeout_ms


@dataclass(frozen=True)
class IncomingMessage:
    """What a decision needs to know of a message.

    `mentions_others` is an @ of anybody but the bot, @all included. `replies_to_bot` and
    `replies_to_other` are about the quoted message outside threads: inside a thread Feishu gives
    the thread's root as parent of every message, so there they say nothing.
    """

    message_id: str
    author: str
    author_id: str
    text: str
    timestamp: int
    is_bot: bool = False
    chat_type: str = "group"
    mentions_bot: bool = False
    mentions_others: bool = False
    replies_to_bot: bool = False
    replies_to_other: bool = False
    root_id: str | None = None

    @property
    def is_explicit(self) -> bool:
        """Addressed to the bot beyond doubt."""
        return self.mentions_bot or self.replies_to_bot or self.chat_type == "p2p"

    def record(self) -> MessageRecord:
        """The message as a conversation keeps it."""
        return MessageRecord(
            author=self.author,
            author_id=self.author_id,
            content=self.text,
            timestamp=self.timestamp,
            is_bot=self.is_bot,
            message_id=self.message_id,
            root_id=self.root_id,
        )


class Reason(StrEnum):
    """Why the bot speaks or keeps silent."""

    OWN_MESSAGE = "own_message"
    BOT_WITHOUT_MENTION = "bot_without_mention"
    BOT_LOOP_LIMIT = "bot_loop_limit"
    EXPLICIT_TRIGGER = "explicit_trigger"
    ADDRESSED_TO_OTHER = "addressed_to_other"
    QUIET = "quiet"
    RECENT_FOLLOWUP = "recent_followup"
    LLM_JUDGE = "llm_judge"
    NO_TRIGGER = "no_trigger"


@dataclass(frozen=True)
class Decision:
    """A decision and what it rests on, as it is logged and stored.

    `tier` is explicit, heuristic, judge or none; `verdict` the judge's yes, no, timeout or error.
    """

    respond: bool
    reason: Reason
    tier: str = "none"
    since_bot_ms: int | None = None
    cue: Cue | None = None
    verdict: str | None = None
    judge_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Silent so far, but a judge may find that the bot is meant."""
        return self.reason is Reason.NO_TRIGGER and self.cue in (Cue.UNCLEAR, Cue.FOLLOW_UP)


class Judge(Protocol):
    """A model that reads the recent messages and the new one and answers `YES` or `NO`."""

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
        bot_turn_limit: int = BOT_TURN_LIMIT,
        judge_seconds: float = JUDGE_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bot_open_id = bot_open_id
        self._window_ms = int(followup_window_seconds * 1000)
        self._judge = judge
        self._bot_turn_limit = bot_turn_limit
        self._judge_seconds = judge_seconds
        self._monotonic = monotonic

    async def should_start_conversation(
        self, message: IncomingMessage, recent: Sequence[MessageRecord] = ()
    ) -> Answer:
        """Whether a message outside any conversation is for the bot; `recent` of the chat."""
        decision = decide_start(message, recent, self._bot_open_id, self._bot_turn_limit)
        return Answer(decision.respond, decision.reason)

    async def should_respond(
        self, message: IncomingMessage, conversation: ChannelConversation
    ) -> Answer:
        """Whether a message of an active conversation is for the bot."""
        decision = await self.decide(message, conversation)
        return Answer(decision.respond, decision.reason)

    async def decide(
        self,
        message: IncomingMessage,
        conversation: ChannelConversation | None,
        recent: Sequence[MessageRecord] = (),
    ) -> Decision:
        """Either of the two, with all that the decision log wants."""
        if conversation is None:
            return decide_start(message, recent, self._bot_open_id, self._bot_turn_limit)
        decision = decide(
            message, conversation, self._bot_open_id, self._window_ms, self._bot_turn_limit
        )
        if self._judge is None or not decision.is_open:
            return decision
        return await self._judged(self._judge, message, conversation, decision)

    async def _judged(
        self,
        judge: Judge,
        message: IncomingMessage,
        conversation: ChannelConversation,
        so_far: Decision,
    ) -> Decision:
        before = self._monotonic()
        try:
            async with asyncio.timeout(self._judge_seconds):
                answer = await judge(_before(message, conversation.messages), message)
            verdict = "yes" if answer.strip().rstrip(".!").upper() == "YES" else "no"
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
            judge_ms=int((self._monotonic() - before) * 1000),
        )


def decide_start(
    message: IncomingMessage,
    recent: Sequence[MessageRecord],
    bot_open_id: str,
    bot_turn_limit: int = BOT_TURN_LIMIT,
) -> Decision:
    """Without a conversation only an explicit trigger speaks to the bot."""
    plain = _plain_decision(message, recent, bot_open_id, bot_turn_limit)
    return plain or Decision(False, Reason.NO_TRIGGER)


def decide(
    message: IncomingMessage,
    conversation: ChannelConversation,
    bot_open_id: str,
    window_ms: int,
    bot_turn_limit: int = BOT_TURN_LIMIT,
) -> Decision:
    """The decision within a conversation, as far as rules go. `message` may be recorded already."""
    earlier = _before(message, conversation.messages)
    exchange, spoken_at = _exchange(message, earlier, bot_open_id)
    since = None if spoken_at is None else message.timestamp - spoken_at
    plain = _plain_decision(message, earlier, bot_open_id, bot_turn_limit)
    if plain:
        return replace(plain, since_bot_ms=since)
    if conversation.quiet:
        return Decision(False, Reason.QUIET, since_bot_ms=since)
    cue = cue_of(message.text, message.author_id, exchange)
    if cue is Cue.FOLLOW_UP and since is not None and since <= window_ms:
        return Decision(True, Reason.RECENT_FOLLOWUP, "heuristic", since, cue)
    return Decision(False, Reason.NO_TRIGGER, since_bot_ms=since, cue=cue)


def is_bot_loop(recent: Iterable[MessageRecord], limit: int) -> bool:
    """Whether the last `limit` messages are all by bots, with no human word between."""
    run = 0
    for record in recent:
        run = run + 1 if record.is_bot else 0
    return run >= limit


def labelled(message: MessageRecord) -> str:
    """`author: text`, further lines indented, so that nobody can write somebody else's line."""
    author = " ".join(message.author.split()).replace(":", "：") or NAMELESS
    text = message.content.strip()
    clipped = text if len(text) <= CLIP_CHARACTERS else f"{text[:CLIP_CHARACTERS]}…"
    return f"{author}: " + "\n    ".join(clipped.splitlines())


def transcript(
    messages: Iterable[MessageRecord],
    *,
    root_id: str | None = None,
    budget_tokens: int,
    estimate: Callable[[str], int],
) -> str:
    """`author: text` line by line, oldest first; the newest messages that fit the budget.

    With `root_id` only that thread. It is what people wrote, for the prompt to show as data.
    """
    lines: list[str] = []
    left = budget_tokens
    ours = [m for m in messages if root_id is None or root_id in (m.root_id, m.message_id)]
    for message in reversed(ours):
        line = labelled(message)
        left -= estimate(line)
        if left < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _plain_decision(
    message: IncomingMessage, recent: Sequence[MessageRecord], bot_open_id: str, limit: int
) -> Decision | None:
    if message.author_id == bot_open_id:
        return Decision(False, Reason.OWN_MESSAGE)
    if message.is_bot and not message.mentions_bot:
        return Decision(False, Reason.BOT_WITHOUT_MENTION)
    if message.is_bot and is_bot_loop(recent, limit):
        return Decision(False, Reason.BOT_LOOP_LIMIT)
    if message.is_explicit:
        return Decision(True, Reason.EXPLICIT_TRIGGER, "explicit")
    if message.mentions_others or message.replies_to_other:
        return Decision(False, Reason.ADDRESSED_TO_OTHER)
    return None


def _before(
    message: IncomingMessage, records: Sequence[MessageRecord]
) -> tuple[MessageRecord, ...]:
    """What had been said when the message was written; it may itself be among the records."""
    return tuple(
        record
        for record in records
        if record.timestamp <= message.timestamp and record.message_id != message.message_id
    )


def _exchange(
    message: IncomingMessage, records: Sequence[MessageRecord], bot_open_id: str
) -> tuple[Exchange, int | None]:
    """What the bot said last where the author reads it, and when: another thread is elsewhere."""
    here = [record for record in records if _is_near(record, message.root_id)]
    spoken = [index for index, record in enumerate(here) if _is_ours(record, bot_open_id)]
    if not spoken:
        return Exchange(), None
    answer, earlier, later = here[spoken[-1]], here[: spoken[-1]], here[spoken[-1] + 1 :]
    asked = _asked(answer, earlier)
    others = {r.author for r in records if not r.is_bot and r.author_id != message.author_id}
    exchange = Exchange(
        said=answer.content,
        asked=asked.content if asked else "",
        asker=asked.author_id if asked else None,
        since=tuple((record.author_id, record.content) for record in later if not record.is_bot),
        names=tuple(sorted(others)),
        bot_name=answer.author,
    )
    return exchange, answer.timestamp


def _is_ours(record: MessageRecord, bot_open_id: str) -> bool:
    return record.ours or record.author_id == bot_open_id


def _is_near(record: MessageRecord, root_id: str | None) -> bool:
    return not root_id or not record.root_id or record.root_id == root_id


def _asked(answer: MessageRecord, earlier: Sequence[MessageRecord]) -> MessageRecord | None:
    """The message that the answer is for: of the person it addresses, else the last one."""
    people = [record for record in reversed(earlier) if not record.is_bot]
    addressed = (r for r in people if r.author and answer.content.startswith(f"@{r.author}"))
    return next(addressed, people[0] if people else None)
