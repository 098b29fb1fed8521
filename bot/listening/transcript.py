"""Holds what was said in a chat lately, the bot’s last exchange, and the transcripts that a worker
caches. Pure.

All times are milliseconds since the epoch, as in Feishu's events.

The memory says with each telling what there is (`mark`), and the worker gives that back with its
next question. If it no longer stands for what the asker may read, the memory tells everything."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from memory.text import labelled_text, speaker_label

MAX_MESSAGES = 200
CLIP_CHARACTERS = 2000
KEPT_CHARACTERS = 2 * CLIP_CHARACTERS  # of a message; answers keep all of theirs elsewhere
OURS = "[you]"

_MOST_BYTES = 3_000_000  # of all transcripts, about
_OF_A_RECORD = 500  # beside its words
_MOST_PLACES = 200


@dataclass(frozen=True)
class MessageRecord:
    """A message as the conversation keeps it.

    `content` is plain text with `@Name`, not card markdown. `ours` says that this bot wrote it:
    Feishu's list names the app, not the bot's open_id. `root_id` is the thread's root, if in a
    thread; `answered` that the bot answered the message. `topic` is the one of the main chat that
    it belongs to (`bot.listening.topics`), if known; `quotes` the message it quotes outside
    threads.
    """

    author: str
    author_id: str
    content: str
    timestamp: int
    is_bot: bool
    message_id: str = ""
    root_id: str | None = None
    ours: bool = False
    answered: bool = False
    topic: int | None = None
    quotes: str = ""

    def is_in(self, root_id: str | None) -> bool:
        """Whether it belongs to that thread, its root included; everything does to the chat."""
        return root_id is None or root_id in (self.root_id, self.message_id)


Records = tuple[MessageRecord, ...]
Look = Coroutine[Any, Any, Records]


@dataclass(frozen=True)
class ChannelConversation:
    """The active conversation of a chat, its messages oldest first.

    `quiet` keeps the bot to explicit triggers; it belongs to the chat and outlives the
    conversation. `is_listed`: the messages come from Feishu's list, so the memory has not all of
    them.
    """

    channel_id: str
    started_at: int
    last_activity: int
    messages: tuple[MessageRecord, ...] = ()
    quiet: bool = False
    is_listed: bool = False

    @cached_property
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
            else {"role": "user", "content": labelled_line(message)}
            for message in self.messages
        )

    def with_message(
        self, record: MessageRecord, *, keep: int = MAX_MESSAGES
    ) -> ChannelConversation:
        """The conversation after `record`; unchanged if its message_id is already there.

        Messages stand in the order of their timestamps, the newest `keep` of them. Activity never
        goes back, however late a message is delivered.
        """
        if record.message_id and any(m.message_id == record.message_id for m in self.messages):
            return self
        ordered_records = sorted((*self.messages, record), key=lambda message: message.timestamp)
        return replace(
            self,
            messages=tuple(ordered_records[-keep:]),
            last_activity=max(self.last_activity, record.timestamp),
        )


def labelled_line(message: MessageRecord, author: str | None = None, *, mark: str = OURS) -> str:
    """`author: text`; a line of this bot bears `mark`, which no name can imitate."""
    name = speaker_label(message.author if author is None else author)
    text = message.content.strip()
    clipped_text = text if len(text) <= CLIP_CHARACTERS else f"{text[:CLIP_CHARACTERS]}…"
    return labelled_text(f"{name} {mark}" if message.ours else name, clipped_text)


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
    ours = [message for message in messages if message.is_in(root_id)]
    return "\n".join(newest_lines(ours, budget_tokens=budget_tokens, estimate=estimate))


def newest_lines(
    messages: Sequence[MessageRecord],
    *,
    budget_tokens: int,
    estimate: Callable[[str], int],
    name: Callable[[MessageRecord], str] | None = None,
) -> list[str]:
    """The lines of the newest messages that fit the budget, oldest first. `name`: what stands in
    front of the words, else the author's name."""
    lines: list[str] = []
    tokens_left = budget_tokens
    for message in reversed(messages):
        line = labelled_line(message, name(message) if name else None)
        tokens_left -= estimate(line)
        if tokens_left < 0:
            break
        lines.append(line)
    return lines[::-1]


@dataclass(frozen=True)
class LastExchange:
    """The bot's last word and what surrounds it.

    `asker` is the id of the person it answered, None if unknown; `since` what people wrote after
    it, as author id and text; `names` those of the other people around; `answered_ids` the ids of
    those whom the bot answered before; `across` that it spoke in a thread and others outside of it
    since.
    """

    answer: str = ""
    question: str = ""
    asker: str | None = None
    since: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    bot_name: str = ""
    answered_ids: frozenset[str] = frozenset()
    across: bool = False


NO_EXCHANGE = LastExchange()


@dataclass(frozen=True, slots=True)
class HeldTranscript:
    """The messages of one chat, oldest first, and what the memory said of them. None: nothing.
    `answered_ids` are the ids of those that the memory named as such, `size` about how many bytes
    they take."""

    mark: Mapping[str, Any] | None = None
    messages: tuple[MessageRecord, ...] = ()
    answered_ids: frozenset[str] = frozenset()
    size: int = 0

    def is_on(self, since_ms: int) -> bool:
        """Whether anything was said since (ms since epoch)."""
        return bool(self.messages) and self.messages[-1].timestamp >= since_ms

    def extend(self, row: Mapping[str, Any]) -> HeldTranscript:
        """After what the SQL functions tell in short to somebody who holds this."""
        before = self if row.get("goes_on") else HeldTranscript()
        topics, answered_ids = row["topics"], frozenset(row["answered"])
        new_records = [_record(message, topics, answered_ids) for message in row["messages"]]
        messages = (*before._change(topics, answered_ids - before.answered_ids), *new_records)
        if before.messages and new_records and _order(new_records[0]) < _order(before.messages[-1]):
            messages = tuple(sorted(messages, key=_order))
        size = before.size + sum(_OF_A_RECORD + len(one.content) for one in new_records)
        return HeldTranscript(row.get("mark"), messages, answered_ids | before.answered_ids, size)

    def _change(
        self, topics: Mapping[str, int], answered_ids: frozenset[str]
    ) -> Iterable[MessageRecord]:
        """The messages with what has become of some of them."""
        if not (topics or answered_ids):
            return self.messages
        changed_ids = answered_ids.union(topics)
        return [
            _with_topic(one, topics, answered_ids) if one.message_id in changed_ids else one
            for one in self.messages
        ]


class EarlierTalk:
    """Talk from before the bot was named, by place. Everybody who asks there within a time shares
    one look-up."""

    def __init__(self) -> None:
        self._looks: OrderedDict[tuple[str, ...], tuple[int, asyncio.Task[Records]]] = OrderedDict()

    async def within(
        self, since_ms: int, now_ms: int, place: tuple[str, ...], look: Callable[[], Look]
    ) -> Records:
        """Returns what `look` finds in the place, oldest first; of a look-up since `since_ms` (ms
        since epoch) what that found."""
        look_under_way = self._looks.get(place)
        if look_under_way is None or look_under_way[0] < since_ms:
            look_under_way = self._looks[place] = now_ms, asyncio.create_task(look())
            while len(self._looks) > _MOST_PLACES:
                self._looks.popitem(last=False)
        talk = await asyncio.shield(look_under_way[1])
        if not talk and self._looks.get(place) == look_under_way:
            del self._looks[place]
        return talk

    def drop(self, chat_id: str) -> None:
        """What was found in that chat may have changed."""
        for place in [one for one in self._looks if chat_id in one]:
            del self._looks[place]


class HeldTranscripts:
    """Those of the chats that were heard last, by tenant and chat; `earlier` came before them."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.earlier = EarlierTalk()
        self._most = most_bytes
        self._held: OrderedDict[tuple[str, str], HeldTranscript] = OrderedDict()
        self._size = 0

    def of(self, tenant_key: str, chat_id: str) -> HeldTranscript:
        """What is held of a chat."""
        return self._held.get((tenant_key, chat_id), HeldTranscript())

    def conversation(
        self, tenant_key: str, transcript: HeldTranscript, row: Mapping[str, Any]
    ) -> ChannelConversation:
        """The conversation that the SQL functions tell in short to the holder of `transcript`."""
        now = transcript.extend(row)
        self._keep((tenant_key, row["channel_id"]), now)
        return ChannelConversation(
            row["channel_id"], row["started_at"], row["last_activity"], now.messages, row["quiet"]
        )

    def drop(self, chat_id: str) -> None:
        """Nothing of that chat is held any more."""
        self.earlier.drop(chat_id)
        for place in [one for one in self._held if one[1] == chat_id]:
            self._drop(place)

    def _drop(self, place: tuple[str, str]) -> None:
        if dropped_transcript := self._held.pop(place, None):
            self._size -= dropped_transcript.size

    def _keep(self, place: tuple[str, str], now: HeldTranscript) -> None:
        self._drop(place)
        if now.mark is None:
            return
        self._held[place] = now
        self._size += now.size
        while self._size > self._most:
            _, oldest = self._held.popitem(last=False)
            self._size -= oldest.size


def _record(
    message: Sequence[Any], topics: Mapping[str, int], answered_ids: frozenset[str]
) -> MessageRecord:
    message_id, root_id, author, author_id, content, timestamp, is_bot, ours, quotes = message
    return _make_record(
        author=author,
        author_id=author_id,
        content=content,
        timestamp=timestamp,
        is_bot=is_bot,
        message_id=message_id,
        root_id=root_id,
        ours=ours,
        answered=message_id in answered_ids and not ours,
        topic=topics.get(message_id),
        quotes=quotes,
    )


def _make_record(**values: Any) -> MessageRecord:
    """`MessageRecord(**values)`; that sets the fields of a frozen record one by one, which for the
    two hundred messages of a busy chat takes as long as all else that is done with them."""
    record = object.__new__(MessageRecord)
    vars(record).update(values)
    return record


def _with_topic(
    one: MessageRecord, topics: Mapping[str, int], answered_ids: frozenset[str]
) -> MessageRecord:
    """A message that was held already, with what has become of it since."""
    topic = topics.get(one.message_id, one.topic)
    is_answered = one.answered or (one.message_id in answered_ids and not one.ours)
    if topic == one.topic and is_answered == one.answered:
        return one
    return replace(one, topic=topic, answered=is_answered)


def _order(one: MessageRecord) -> tuple[int, str]:
    return one.timestamp, one.message_id
