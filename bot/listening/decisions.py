"""Decides by rules whether the bot answers a message, and whether it may answer an open question.
Pure.

The rules apply in this order:

1. The bot never answers itself.
2. It answers another bot only when that bot mentions it and has budget left
   (`bot.listening.bot_budget`).
3. It always answers an explicit trigger.
4. It never answers a message to somebody else.
5. In a quiet chat it answers nothing more.
6. The chat's mode may decide about a message that addresses nobody.
7. It answers people who go on with an exchange that it answered lately (`bot.listening.cues`).

The bot prefers silence: whatever may be an answer to the question counts as one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bot.listening.chat_rules import NOTHING_SPENT, BotBudget, Mode
from bot.listening.cues import Cue, cue_of, is_closing, is_side_talk
from bot.listening.requests import is_question
from bot.listening.topics import answer_links, split_by_topic
from bot.listening.transcript import ChannelConversation, LastExchange, MessageRecord
from bot.text.slash_commands import parse_command

_LATELY = 30  # messages
_CROWD = 6  # recent speakers; with more, any two messages seldom belong together
_LIKELY = 0.3

_EVERYBODY = re.compile(
    r"^\W*(?:(?:hi|hey|hello|guys|folks|all|everyone|everybody|team|please)\b[\s,]*)*"
    r"(?:(?:do|does|did|can|could|would)\s+)?(?:anyone|anybody|someone|somebody|who)"
    r"(?: here| else)?\s+(?:happens? to )?(?:knows?|remembers?|recalls?|tell (?:me|us)|say)\s+"
    r"(?=(?:when|what|where|who|whose|which|why|how|if|whether)\b)"
    r"|^\W*(?:(?:请问|问一下|想问下?|求助)[\s,，]*)?(?:(?:有没有|有)[人谁]|谁|大家|各位|你们)(?:还|都)?"
    r"(?:知道|记得|清楚|了解|晓得)",
    re.IGNORECASE,
)


class AddressedBy(StrEnum):
    """How an explicit trigger addressed the bot."""

    MENTION = "mention"
    REPLY = "reply"
    BUTTON = "button"
    PERMISSION = "permission"


@dataclass(frozen=True)
class IncomingMessage:
    """What a decision needs to know about a message.

    `mentions_others` is an @ of anybody but the bot, @all included; `mentions_bots` is an @ of
    another bot. `replies_to_bot` and `replies_to_other` say who wrote the quoted message, and
    `quotes` is its id. They hold outside threads only: inside a thread Feishu names the thread's
    root as the parent of every message. `is_press`: nobody wrote it, somebody pressed a button or,
    where `is_resumed`, gave a permission.
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
    is_press: bool = False
    is_resumed: bool = False
    root_id: str | None = None
    quotes: str = ""

    @property
    def is_explicit(self) -> bool:
        """Whether the message clearly addresses the bot."""
        return self.mentions_bot or self.replies_to_bot or self.chat_type == "p2p"

    @property
    def address(self) -> AddressedBy | None:
        """How it addresses the bot, where it is not only the chat that does."""
        if self.is_press:
            return AddressedBy.PERMISSION if self.is_resumed else AddressedBy.BUTTON
        if self.mentions_bot:
            return AddressedBy.MENTION
        return AddressedBy.REPLY if self.replies_to_bot else None

    @property
    def is_request(self) -> bool:
        """Whether a person wrote it to this bot or another one."""
        return not self.is_bot and (self.is_explicit or self.mentions_bots)

    def record(self) -> MessageRecord:
        """The message in the form that a conversation stores."""
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
    """A decision and the reasons for it, as logged and stored.

    `tier` is explicit, heuristic, mode, judge or none. `cue`: how the message reads, or how it
    addresses the bot. `verdict` is what the judge gave: yes, no,
    timeout or error.
    """

    respond: bool
    reason: Reason
    tier: str = "none"
    since_bot_ms: int | None = None
    cue: Cue | AddressedBy | None = None
    verdict: str | None = None
    judge_ms: int | None = None

    @property
    def is_outright(self) -> bool:
        """Whether somebody addressed the bot itself."""
        return self.reason in _OUTRIGHT

    @property
    def is_open(self) -> bool:
        """Whether the rules keep the bot silent but a judge may find that the bot is meant."""
        silent = self.reason in (Reason.NO_TRIGGER, Reason.OTHER_TOPIC)
        return silent and self.cue in (Cue.UNCLEAR, Cue.FOLLOW_UP)


_OUTRIGHT = (Reason.EXPLICIT_TRIGGER, Reason.BOT_ASKED, Reason.BOT_LAST_ANSWER)


def decide_start(
    message: IncomingMessage,
    bot_open_id: str,
    budget: BotBudget | None = NOTHING_SPENT,
    mode: Mode = "follow",
) -> Decision:
    """The decision outside a conversation: only an explicit trigger gets an answer, unless the mode
    is "all".

    `budget` limits the answers to other bots. None means unknown, and then they get no answer.
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
    """The rules' decision within a conversation. `message` may be recorded already.

    A follow-up is answered for `window_ms` after the bot's last words. The window never closes in a
    thread where the bot has spoken. In the main chat it also closes for a message on another topic.
    """
    earlier = records_before(message, conversation.messages)
    exchange, spoken_at = exchange_at(message, earlier, bot_open_id)
    since_bot_ms = None if spoken_at is None else message.timestamp - spoken_at
    plain = _plain_decision(message, bot_open_id, budget)
    if plain:
        return replace(plain, since_bot_ms=since_bot_ms)
    if conversation.quiet:
        return Decision(False, Reason.QUIET, since_bot_ms=since_bot_ms)
    cue = cue_of(message.text, message.author_id, exchange)
    if cue is not Cue.SIDE_TALK and (of_mode := _decision_of_mode(mode, message)):
        return replace(of_mode, since_bot_ms=since_bot_ms, cue=cue)
    if cue in (Cue.FOLLOW_UP, Cue.UNCLEAR) and _talks_with_a_bot(message, earlier):
        return Decision(False, Reason.AMONG_BOTS, since_bot_ms=since_bot_ms, cue=cue)
    in_time = since_bot_ms is not None and (
        since_bot_ms <= window_ms or message.root_id is not None
    )
    if cue is Cue.FOLLOW_UP and in_time:
        if _is_elsewhere(message, conversation, bot_open_id):
            return Decision(False, Reason.OTHER_TOPIC, since_bot_ms=since_bot_ms, cue=cue)
        return Decision(True, Reason.RECENT_FOLLOWUP, "heuristic", since_bot_ms, cue)
    return Decision(False, Reason.NO_TRIGGER, since_bot_ms=since_bot_ms, cue=cue)


def _plain_decision(
    message: IncomingMessage, bot_open_id: str, budget: BotBudget | None
) -> Decision | None:
    if message.author_id == bot_open_id:
        return Decision(False, Reason.OWN_MESSAGE)
    if message.is_bot:
        return _decision_on_bot(message, budget)
    if message.is_explicit:
        return Decision(True, Reason.EXPLICIT_TRIGGER, "explicit", cue=message.address)
    if message.mentions_others or message.replies_to_other:
        return Decision(False, Reason.ADDRESSED_TO_OTHER)
    return None


def _decision_on_bot(message: IncomingMessage, budget: BotBudget | None) -> Decision:
    if not message.mentions_bot:
        return Decision(False, Reason.BOT_WITHOUT_MENTION)
    is_reply = bool(message.root_id or message.quotes)
    remaining = (
        budget.remaining(message.author_id, message.timestamp, is_reply=is_reply) if budget else 0
    )
    if remaining < 1:
        return Decision(False, Reason.BOT_LOOP_LIMIT)
    reason = Reason.BOT_LAST_ANSWER if remaining == 1 else Reason.BOT_ASKED
    return Decision(True, reason, "explicit")


def _talks_with_a_bot(message: IncomingMessage, earlier: Sequence[MessageRecord]) -> bool:
    """Whether the bot's last answer in the author's thread or main chat was to another bot.

    An answer to a person in between would keep the exchange of the two bots going.
    """
    answered_records = (
        one for one in reversed(earlier) if one.answered and one.is_in(message.root_id)
    )
    return any(one.is_bot for one in itertools.islice(answered_records, 1))


def _decision_of_mode(mode: Mode, message: IncomingMessage) -> Decision | None:
    """What the chat's mode alone decides about a message that addresses nobody."""
    if mode == "mention":
        return Decision(False, Reason.MODE_MENTION)
    if mode == "threads" and message.root_id is None:
        return Decision(False, Reason.MODE_THREADS)
    if mode == "all" and message.text.strip():
        return Decision(True, Reason.MODE_ALL, "mode")
    return None


def records_before(
    message: IncomingMessage, records: Sequence[MessageRecord]
) -> tuple[MessageRecord, ...]:
    """The records from before the message, which may itself be among them."""
    return tuple(
        record
        for record in records
        if record.timestamp <= message.timestamp and record.message_id != message.message_id
    )


def exchange_at(
    message: IncomingMessage, records: Sequence[MessageRecord], bot_open_id: str
) -> tuple[LastExchange, int | None]:
    """The bot's last words in the author's thread or main chat, and when it said them (ms)."""
    here = [record for record in records if record.is_in(message.root_id)]
    places = reversed(range(len(here)))
    last_place = next((place for place in places if _is_ours(here[place], bot_open_id)), None)
    if last_place is None:
        return LastExchange(), None
    answer, earlier, later = here[last_place], here[:last_place], here[last_place + 1 :]
    question = _asked_record(answer, earlier)
    others = {r.author for r in records if not r.is_bot and r.author_id != message.author_id}
    exchange = LastExchange(
        answer=answer.content,
        question=question.content if question else "",
        asker=question.author_id if question else None,
        since=tuple((record.author_id, record.content) for record in later),
        names=tuple(sorted(others)),
        bot_name=answer.author,
        answered_ids=frozenset(r.author_id for r in earlier if r.answered and r is not question),
        across=_is_across(message, answer, later),
    )
    return exchange, answer.timestamp


def _is_across(
    message: IncomingMessage, answer: MessageRecord, later: Sequence[MessageRecord]
) -> bool:
    """Whether the bot spoke in a thread, and later the author and others in the main chat."""
    others = (one for one in later if one.author_id != message.author_id and one.root_id is None)
    return message.root_id is None and answer.root_id is not None and any(others)


def _is_elsewhere(
    message: IncomingMessage, conversation: ChannelConversation, bot_open_id: str
) -> bool:
    """Whether the message clearly belongs to another topic than the bot's last words before it.

    Where many people speak, an unlikely match with the bot's topic is enough.
    """
    if message.root_id is not None:
        return False
    earlier = records_before(message, conversation.messages)
    talk = split_by_topic(earlier, message.record())
    ours = [record for record in talk.messages if _is_ours(record, bot_open_id)]
    our_topic = talk.topic_of(ours[-1])
    if our_topic is None:
        return False
    lately = {record.author_id for record in earlier[-_LATELY:]}
    if len(lately) > _CROWD and talk.shares.get(our_topic, 0.0) < _LIKELY:
        return True
    return talk.topic is not None and our_topic != talk.topic


def _is_ours(record: MessageRecord, bot_open_id: str) -> bool:
    return record.ours or record.author_id == bot_open_id


def _asked_record(answer: MessageRecord, earlier: Sequence[MessageRecord]) -> MessageRecord | None:
    """The question that the answer is for: the last from the person whom the answer addresses, else
    the last from anybody. A message to somebody else does not count."""
    ours = f"@{answer.author}"
    people = [
        record
        for record in reversed(earlier)
        if not record.is_bot and (record.content[:1] != "@" or record.content.startswith(ours))
    ]
    addressed_records = (
        r for r in people if r.author and answer.content.startswith(f"@{r.author}")
    )
    return next(addressed_records, people[0] if people else None)


_SILENT = frozenset(
    {Reason.NO_TRIGGER, Reason.OTHER_TOPIC, Reason.MODE_MENTION, Reason.MODE_THREADS}
)


def may_wait(message: IncomingMessage, decision: Decision) -> bool:
    """Whether an unanswered message is a question to everybody, in the main chat or a thread."""
    silent = not decision.respond and decision.reason in _SILENT
    aside = decision.cue in (Cue.SIDE_TALK, Cue.CLOSING) and not _EVERYBODY.match(message.text)
    is_addressed = message.mentions_others or message.quotes
    if not silent or aside or is_addressed or message.is_bot:
        return False
    return is_open_question(message.text, ())


def is_open_question(text: str, names: Iterable[str]) -> bool:
    """A question to nobody of those `names`, and neither side talk nor a command."""
    words = bare_question(text)
    if words[:1] in ("/", "／") or "@" in words or parse_command(words) or not is_question(words):
        return False
    around = LastExchange(names=tuple(sorted(name for name in names if name)))
    return not is_side_talk(words, around) and not is_closing(words)


def bare_question(text: str) -> str:
    """The question without asking whether anybody knows: “does anybody know when …?”"""
    return _EVERYBODY.sub("", text.strip())


def is_question_taken_up(messages: Sequence[MessageRecord], message_id: str) -> bool:
    """Whether somebody took the question up in the chat's messages, oldest first; also where it is
    not among them. Its own author may ask once more."""
    at = next((i for i, one in enumerate(messages) if one.message_id == message_id), None)
    if at is None:
        return True
    answers = answer_links(messages)
    topics: list[int] = []
    for index, answer in enumerate(answers):
        topics.append(topics[answer] if answer < index else index)
    question = messages[at]
    return any(
        (topics[index] == topics[at] or one.root_id == message_id or one.quotes == message_id)
        and (one.author_id != question.author_id or not is_question(one.content))
        for index, one in enumerate(messages)
        if index > at
    )


def is_thread_continued(thread: Sequence[MessageRecord], message_id: str) -> bool:
    """Whether anything was said in a thread after the question but the question again; also where
    it is not in the thread's messages, oldest first."""
    at = next((i for i, one in enumerate(thread) if one.message_id == message_id), None)
    if at is None:
        return True
    asker = thread[at].author_id
    return any(one.author_id != asker or not is_question(one.content) for one in thread[at + 1 :])


def is_any_stated(lines: Iterable[str]) -> bool:
    """Whether one of these was stated, not merely asked or commanded."""
    return any(not parse_command(one) and not is_question(one.strip()) for one in lines)


def speaks_at(moment: datetime, hours: tuple[int, int]) -> bool:
    """Whether a local time lies in these hours, which may go over midnight."""
    begin, end = hours
    if begin <= end:
        return begin <= moment.hour < end
    return moment.hour >= begin or moment.hour < end
