"""The transcripts that a worker holds, so that the memory tells it only what is new.

The memory says with each telling what there is (`mark`), and the worker gives that back with its
next question. If it no longer stands for what the asker may read, the memory tells everything.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.listening.transcript import ChannelConversation, MessageRecord

_MOST_BYTES = 3_000_000  # of all transcripts, about
_OF_A_RECORD = 500  # beside its words
_MOST_PLACES = 200

Records = tuple[MessageRecord, ...]
Look = Coroutine[Any, Any, Records]


@dataclass(frozen=True, slots=True)
class HeldTranscript:
    """The messages of one chat, oldest first, and what the memory said of them. None: nothing.
    `answered` are the ids of those that the memory named as such, `size` about how many bytes they
    take."""

    mark: Mapping[str, Any] | None = None
    messages: tuple[MessageRecord, ...] = ()
    answered: frozenset[str] = frozenset()
    size: int = 0

    def is_on(self, since_ms: int) -> bool:
        """Whether anything was said since (ms since epoch)."""
        return bool(self.messages) and self.messages[-1].timestamp >= since_ms

    def extended(self, row: Mapping[str, Any]) -> HeldTranscript:
        """After what the SQL functions tell in short to somebody who holds this."""
        before = self if row.get("goes_on") else HeldTranscript()
        topics, answered_ids = row["topics"], frozenset(row["answered"])
        new_records = [_record(message, topics, answered_ids) for message in row["messages"]]
        messages = (*before._changed(topics, answered_ids - before.answered), *new_records)
        if before.messages and new_records and _order(new_records[0]) < _order(before.messages[-1]):
            messages = tuple(sorted(messages, key=_order))
        size = before.size + sum(_OF_A_RECORD + len(one.content) for one in new_records)
        return HeldTranscript(row.get("mark"), messages, answered_ids | before.answered, size)

    def _changed(
        self, topics: Mapping[str, int], answered_ids: frozenset[str]
    ) -> Iterable[MessageRecord]:
        """The messages with what has become of some of them."""
        if not (topics or answered_ids):
            return self.messages
        changed_ids = answered_ids.union(topics)
        return (
            _known(one, topics, answered_ids) if one.message_id in changed_ids else one
            for one in self.messages
        )


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
        now = transcript.extended(row)
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
    message_id, root_id, author, author_id, content, timestamp, is_bot, ours = message
    return _made(
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
    )


def _made(**values: Any) -> MessageRecord:
    """`MessageRecord(**values)`; that sets the fields of a frozen record one by one, which for the
    two hundred messages of a busy chat takes as long as all else that is done with them."""
    record = object.__new__(MessageRecord)
    vars(record).update(values)
    return record


def _known(
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
