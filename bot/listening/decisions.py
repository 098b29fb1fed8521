"""Whether the bot speaks, as far as rules go, and why. Pure.

In this order: its own words never, other bots only by mention and within their budget
(`bot.listening.bot_budget`), explicit triggers always, messages to somebody else never, in a quiet
chat nothing more, and lately answered people when they go on (`bot.listening.cues`).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.listening.bot_budget import NOTHING_SPENT, BotBudget
from bot.listening.chat_rules import Mode
from bot.listening.cues import Cue, cue_of
from bot.listening.exchange import LastExchange
from bot.listening.topics import tell_apart
from bot.listening.transcript import ChannelConversation, MessageRecord

_LATELY = 30  # messages
_CROWD = 6  # people who spoke lately: above that any two messages seldom belong together
_LIKELY = 0.3


@dataclass(frozen=True)
class IncomingMessage:
    """What a decision needs to know of a message.

    `mentions_others` is an @ of anybody but the bot, @all included; `mentions_bots` an @ of another
    bot. `replies_to_bot` and
    `replies_to_other` are about the quoted message outside threads: inside a thread Feishu gives
    the thread's root as parent of every message, so there they say nothing. `quotes` is that
    message's id.
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
    mentions_bots: bool = False
    replies_to_bot: bool = False
    replies_to_other: bool = False
    root_id: str | None = None
    quotes: str = ""

    @property
    def is_explicit(self) -> bool:
        """Addressed to the bot beyond doubt."""
        return self.mentions_bot or self.replies_to_bot or self.chat_type == "p2p"

    @property
    def is_request(self) -> bool:
        """Written by a person to this bot or another."""
        return not self.is_bot and (self.is_explicit or self.mentions_bots)

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
            quotes=self.quotes,
        )


class Reason(StrEnum):
    """Why the bot speaks or keeps silent."""

    OWN_MESSAGE = "own_message"
    BOT_WITHOUT_MENTION = "bot_without_mention"
    BOT_ASKED = "bot_asked"
    BOT_LAST_ANSWER = "bot_last_answer"
    BOT_LOOP_LIMIT = "bot_loop_limit"
    AMONG_BOTS = "among_bots"
    EXPLICIT_TRIGGER = "explicit_trigger"
    ADDRESSED_TO_OTHER = "addressed_to_other"
    QUIET = "quiet"
    RECENT_FOLLOWUP = "recent_followup"
    OTHER_TOPIC = "other_topic"
    LLM_JUDGE = "llm_judge"
    NO_TRIGGER = "no_trigger"
    MODE_ALL = "mode_all"
    MODE_MENTION = "mode_mention"
    MODE_THREADS = "mode_threads"
    PROACTIVE = "proactive"
    STOP = "stop"
    RATE_LIMITED = "rate_limited"


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
    def is_outright(self) -> bool:
        """Somebody put it to the bot itself."""
        return self.reason in _OUTRIGHT

    @property
    def is_open(self) -> bool:
        """Silent so far, but a judge may find that the bot is meant."""
        silent = self.reason in (Reason.NO_TRIGGER, Reason.OTHER_TOPIC)
        return silent and self.cue in (Cue.UNCLEAR, Cue.FOLLOW_UP)


_OUTRIGHT = (Reason.EXPLICIT_TRIGGER, Reason.BOT_ASKED, Reason.BOT_LAST_ANSWER)


def decide_start(
    message: IncomingMessage,
    bot_open_id: str,
    budget: BotBudget | None = NOTHING_SPENT,
    mode: Mode = "follow",
) -> Decision:
    """Without a conversation only an explicit trigger speaks to the bot, unless it answers all.

    `budget` is what other bots are answered from; None, unknown, leaves them without an answer.
    """
    plain = _plain_decision(message, bot_open_id, budget)
    return plain or _decision_of_mode(mode, message) or Decision(False, Reason.NO_TRIGGER)


def decide(
    message: IncomingMessage,
    conversation: ChannelConversation,
    bot_open_id: str,
    window_ms: int,
    budget: BotBudget | None = NOTHING_SPENT,
    mode: Mode = "follow",
) -> Decision:
    """The decision within a conversation, as far as rules go. `message` may be recorded already.

    In a thread in which the bot has spoken the window does not close; in the main chat it closes
    for who has gone on with another topic.
    """
    earlier = before(message, conversation.messages)
    exchange, spoken_at = exchange_at(message, earlier, bot_open_id)
    since = None if spoken_at is None else message.timestamp - spoken_at
    plain = _plain_decision(message, bot_open_id, budget)
    if plain:
        return replace(plain, since_bot_ms=since)
    if conversation.quiet:
        return Decision(False, Reason.QUIET, since_bot_ms=since)
    cue = cue_of(message.text, message.author_id, exchange)
    if cue is not Cue.SIDE_TALK and (of_mode := _decision_of_mode(mode, message)):
        return replace(of_mode, since_bot_ms=since, cue=cue)
    if cue in (Cue.FOLLOW_UP, Cue.UNCLEAR) and _talks_with_a_bot(message, earlier):
        return Decision(False, Reason.AMONG_BOTS, since_bot_ms=since, cue=cue)
    in_time = since is not None and (since <= window_ms or message.root_id is not None)
    if cue is Cue.FOLLOW_UP and in_time:
        if _is_elsewhere(message, conversation, bot_open_id):
            return Decision(False, Reason.OTHER_TOPIC, since_bot_ms=since, cue=cue)
        return Decision(True, Reason.RECENT_FOLLOWUP, "heuristic", since, cue)
    return Decision(False, Reason.NO_TRIGGER, since_bot_ms=since, cue=cue)


def _plain_decision(
    message: IncomingMessage, bot_open_id: str, budget: BotBudget | None
) -> Decision | None:
    if message.author_id == bot_open_id:
        return Decision(False, Reason.OWN_MESSAGE)
    if message.is_bot:
        return _decision_on_bot(message, budget)
    if message.is_explicit:
        return Decision(True, Reason.EXPLICIT_TRIGGER, "explicit")
    if message.mentions_others or message.replies_to_other:
        return Decision(False, Reason.ADDRESSED_TO_OTHER)
    return None


def _decision_on_bot(message: IncomingMessage, budget: BotBudget | None) -> Decision:
    if not message.mentions_bot:
        return Decision(False, Reason.BOT_WITHOUT_MENTION)
    is_reply = bool(message.root_id or message.quotes)
    left = budget.left(message.author_id, message.timestamp, is_reply=is_reply) if budget else 0
    if left < 1:
        return Decision(False, Reason.BOT_LOOP_LIMIT)
    reason = Reason.BOT_LAST_ANSWER if left == 1 else Reason.BOT_ASKED
    return Decision(True, reason, "explicit")


def _talks_with_a_bot(message: IncomingMessage, earlier: Sequence[MessageRecord]) -> bool:
    """Whether the last message that the bot answered where the author writes was another bot's.

    Answering people's talk between two bots would feed their exchange.
    """
    answered = (one for one in reversed(earlier) if one.answered and one.is_in(message.root_id))
    return any(one.is_bot for one in itertools.islice(answered, 1))


def _decision_of_mode(mode: Mode, message: IncomingMessage) -> Decision | None:
    """What the chat's mode alone decides about a message that addresses nobody."""
    if mode == "mention":
        return Decision(False, Reason.MODE_MENTION)
    if mode == "threads" and message.root_id is None:
        return Decision(False, Reason.MODE_THREADS)
    if mode == "all" and message.text.strip():
        return Decision(True, Reason.MODE_ALL, "mode")
    return None


def before(message: IncomingMessage, records: Sequence[MessageRecord]) -> tuple[MessageRecord, ...]:
    """What had been said when the message was written; it may itself be among the records."""
    return tuple(
        record
        for record in records
        if record.timestamp <= message.timestamp and record.message_id != message.message_id
    )


def exchange_at(
    message: IncomingMessage, records: Sequence[MessageRecord], bot_open_id: str
) -> tuple[LastExchange, int | None]:
    """What the bot said last where the author reads it, and when: another thread is elsewhere."""
    here = [record for record in records if record.is_in(message.root_id)]
    places = reversed(range(len(here)))
    spoken = next((place for place in places if _is_ours(here[place], bot_open_id)), None)
    if spoken is None:
        return LastExchange(), None
    answer, earlier, later = here[spoken], here[:spoken], here[spoken + 1 :]
    asked = _asked(answer, earlier)
    others = {r.author for r in records if not r.is_bot and r.author_id != message.author_id}
    exchange = LastExchange(
        said=answer.content,
        asked=asked.content if asked else "",
        asker=asked.author_id if asked else None,
        since=tuple((record.author_id, record.content) for record in later),
        names=tuple(sorted(others)),
        bot_name=answer.author,
        answered=frozenset(r.author_id for r in earlier if r.answered and r is not asked),
        across=_is_across(message, answer, later),
    )
    return exchange, answer.timestamp


def _is_across(
    message: IncomingMessage, answer: MessageRecord, later: Sequence[MessageRecord]
) -> bool:
    """Whether the bot spoke in a thread, and others outside of one since, as the author does."""
    others = (one for one in later if one.author_id != message.author_id and one.root_id is None)
    return message.root_id is None and answer.root_id is not None and any(others)


def _is_elsewhere(
    message: IncomingMessage, conversation: ChannelConversation, bot_open_id: str
) -> bool:
    """Whether the message surely belongs to another topic than what the bot said last; where many
    people speak, whether it does not likely belong to that one."""
    if message.root_id is not None:
        return False
    earlier = before(message, conversation.messages)
    talk = tell_apart(earlier, message.record())
    ours = [record for record in talk.messages if _is_ours(record, bot_open_id)]
    spoken = talk.topic_of(ours[-1]) if ours else None
    if spoken is None:
        return False
    lately = {record.author_id for record in earlier[-_LATELY:]}
    if len(lately) > _CROWD and talk.shares.get(spoken, 0.0) < _LIKELY:
        return True
    return talk.topic is not None and spoken != talk.topic


def _is_ours(record: MessageRecord, bot_open_id: str) -> bool:
    return record.ours or record.author_id == bot_open_id


def _asked(answer: MessageRecord, earlier: Sequence[MessageRecord]) -> MessageRecord | None:
    """The message that the answer is for, one to somebody else never: of the person it addresses,
    else the last one."""
    ours = f"@{answer.author}"
    people = [
        record
        for record in reversed(earlier)
        if not record.is_bot and (record.content[:1] != "@" or record.content.startswith(ours))
    ]
    addressed = (r for r in people if r.author and answer.content.startswith(f"@{r.author}"))
    return next(addressed, people[0] if people else None)
