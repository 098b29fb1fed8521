"""Several discussions in one chat: who answers whom, and which topic a message belongs to. Pure.

A quotation and a thread say it themselves; else it is weighed (`bot.listening.reply_links`). A
topic of the main chat is named by when its first message was sent (ms since epoch); a thread is its
own topic.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bot.listening.reply_links import WINDOW, Speakers, WeighedMessage, Words, likelihoods
from bot.listening.transcript import MessageRecord

SURE = 0.75
_NEAR = 5
_NO_DISCUSSION = 2  # messages of one person
Shares = Mapping[int | None, float]


@dataclass(frozen=True)
class Discussion:
    """The messages of a chat with their topics, and where one of them, the newest, belongs.

    `shares`: how likely that one belongs to which topic; None is a new one. `spoken_for`: of its
    words that were said before, the part that was said on which topic. `new_topics` are the topics
    that were not known before: message id → topic. `newest` is the key of that message.
    """

    messages: tuple[MessageRecord, ...] = ()
    shares: Shares = field(default_factory=dict)
    spoken_for: Mapping[int | None, float] = field(default_factory=dict)
    new_topics: Mapping[str, int] = field(default_factory=dict)
    newest: str = ""

    @property
    def topic(self) -> int | None:
        """The topic of the newest message; None where it is a new one, or in doubt: not likely
        enough, or its words do not say the same."""
        topic = max(self.shares, key=lambda one: self.shares[one], default=None)
        if topic is None or self.shares[topic] < SURE:
            return None
        return topic if self.spoken_for.get(topic, 0.0) >= SURE else None

    def topic_of(self, record: MessageRecord) -> int | None:
        """The topic of a message; of one in a thread, that of the message it hangs under."""
        return record.topic if record.root_id is None else self._topics.get(record.root_id)

    def of_topic(self, text: str) -> tuple[MessageRecord, ...]:
        """What was said on the topic of the newest message, whose text is `text`, and in threads
        under it, and what no discussion holds right before it. All messages where that is in
        doubt, or where everything is asked for."""
        topic = self.topic
        if topic is None or _ALL.search(text):
            return self.messages
        near = self._near()
        return tuple(
            one for one in self.messages if self.topic_of(one) == topic or one.message_id in near
        )

    @cached_property
    def _topics(self) -> Mapping[str, int | None]:
        """message_id → topic."""
        return {one.message_id: one.topic for one in reversed(self.messages)}

    def _near(self) -> frozenset[str]:
        """Of the last lines of the main chat before the newest those that no discussion holds: one
        person said them, and few. Their words need not say what they are meant for."""
        speakers: defaultdict[int | None, list[str]] = defaultdict(list)
        main: list[MessageRecord] = []
        for one in self.messages:
            if _key(one) == self.newest:
                break
            speakers[self.topic_of(one)].append(one.author_id)
            if one.root_id is None:
                main.append(one)
        return frozenset(
            one.message_id
            for one in main[-_NEAR:]
            if len(authors := speakers[one.topic]) <= _NO_DISCUSSION and len(set(authors)) == 1
        )


def answer_links(messages: Sequence[MessageRecord]) -> tuple[int, ...]:
    """For each message, oldest first, the index of the one it answers, or its own."""
    people = Speakers()
    answered_indexes: list[int] = []
    topics: list[int] = []
    chat: list[tuple[int, WeighedMessage]] = []
    for index, message in enumerate(messages):
        people.meet(message)
        weighed_message = people.read(message)
        answers = _told_topic(message, messages[:index])
        if answers is None:
            earlier = chat[-WINDOW:]
            before = [one for _, one in earlier]
            likely = likelihoods(weighed_message, before, Words(weighed_message, before))
            best = max(range(len(likely)), key=likely.__getitem__)
            answers = earlier[best - 1][0] if best else index
        answered_indexes.append(answers)
        topics.append(topics[answers] if answers < index else index)
        if _in_main(message):
            weighed_message.topic = topics[index]
            chat.append((index, weighed_message))
    return tuple(answered_indexes)


def split_by_topic(
    messages: Sequence[MessageRecord], newest: MessageRecord, *, asks_bot: bool = False
) -> Discussion:
    """Finds the topics of a chat's last `WINDOW` messages (oldest first) that have none, and where
    `newest` belongs, which may be among them. A message in a thread has no topic here.

    `asks_bot`: the newest is a question to the bot, which may come from outside a discussion.
    """
    key = _key(newest)
    records = [newest if (one.message_id or _key(one)) == key else one for one in messages]
    if not any(one is newest for one in records):
        records.append(newest)
    chat = [one for one in records if one.root_id is None or one.ours][-2 * WINDOW :]
    if not [one for one in chat[-WINDOW:] if _is_open(one, newest)]:
        return Discussion(tuple(records))  # nothing is to be weighed
    topics = {one.message_id or _key(one): one.topic for one in chat if one.topic is not None}
    topic_ids: dict[str, int] = {}
    shares: Shares = {}
    spoken_for: Shares = {}
    asking = newest if asks_bot else None
    for one, its_shares, its_words in _weigh_messages(chat, newest, asking, topics):
        if one is newest:
            shares, spoken_for = its_shares, its_words
        if _key(one) not in topics:
            topics[_key(one)] = topic_ids[_key(one)] = _name(its_shares, one)
    placed_records = (
        [
            replace(one, topic=topic_ids[name]) if (name := _key(one)) in topic_ids else one
            for one in records
        ]
        if topic_ids
        else records
    )
    return Discussion(tuple(placed_records), shares, spoken_for, topic_ids, key)


def _weigh_messages(
    chat: Sequence[MessageRecord],
    newest: MessageRecord,
    asking: MessageRecord | None,
    topics: Mapping[str, int],
) -> Iterator[tuple[MessageRecord, Shares, Shares]]:
    """The messages whose topic is to be weighed, how likely each is, and what their words say.
    `topics` grow meanwhile."""
    last = range(max(0, len(chat) - WINDOW), len(chat))
    begin = next((i for i in last if _is_open(chat[i], newest)), len(chat))
    people = Speakers.of(chat)
    weighed_messages: list[WeighedMessage] = []
    for index in range(max(0, begin - WINDOW), len(chat)):
        one = chat[index]
        read = people.read(one)
        if index >= begin and _is_open(one, newest):
            earlier = weighed_messages[-WINDOW:]
            answers = _told_topic(one, chat[:index])
            if answers is not None:
                quoted_record = chat[answers]
                sure = {topics.get(quoted_record.root_id or _key(quoted_record)): 1.0}
                yield one, sure, sure
            else:
                words = Words(read, earlier)
                shares = _shares(read, earlier, words, asks_bot=one is asking)
                yield one, shares, _spoken_for(words)
        read.topic = topics.get(one.root_id or _key(one))
        weighed_messages.append(read)


def _key(message: MessageRecord) -> str:
    """Its id; of one that has none, what tells it from others."""
    return message.message_id or f"{message.timestamp} {message.author_id} {message.content[:20]}"


def _is_open(message: MessageRecord, newest: MessageRecord) -> bool:
    """Whether a message's topic is to be weighed."""
    return message.root_id is None and (message.topic is None or message is newest)


def _in_main(message: MessageRecord) -> bool:
    """Whether it is part of the main chat: what the bot answers in a thread goes on there."""
    return message.root_id is None or message.ours


def _shares(
    read: WeighedMessage,
    weighed_messages: Sequence[WeighedMessage],
    words: Words,
    *,
    asks_bot: bool,
) -> Shares:
    shares: dict[int | None, float] = defaultdict(float)
    first, *rest = likelihoods(read, weighed_messages, words, asks_bot=asks_bot)
    shares[None] = first
    for one, share in zip(weighed_messages, rest, strict=True):
        shares[one.topic] += share
    return shares


def _spoken_for(words: Words) -> Shares:
    total = sum(words.within.values())
    return {topic: part / total for topic, part in words.within.items()} if total else {}


def _name(shares: Shares, message: MessageRecord) -> int:
    topic = max(shares, key=lambda one: shares[one])
    return message.timestamp if topic is None else topic


def _told_topic(message: MessageRecord, before: Sequence[MessageRecord]) -> int | None:
    """The index of the message that `message` quotes, or of the one before it in its thread."""
    if not message.quotes and not message.root_id:
        return None
    for index in reversed(range(len(before))):
        one = before[index]
        if message.quotes == one.message_id and message.quotes:
            return index
        if message.root_id and not message.quotes and one.is_in(message.root_id):
            return index
    return len(before) if message.root_id else None


# Who asks for what everybody said wants no selection.
_ALL = re.compile(
    r"\b(?:everything|all (?:the |these )?(?:topics|discussions|messages|points)"
    r"|(?:whole|entire) (?:chat|group|discussion)|this (?:chat|group))\b"
    r"|所有(?:的)?(?:讨论|话题|消息|内容|事)|全部(?:的)?(?:讨论|话题|消息|内容)|(?:各|几)个(?:话题|讨论)|整个群|群里|本群"
    r"|大家(?:刚才|刚刚|今天|最近|都|在)*(?:说|聊|讨论)",
    re.IGNORECASE,
)
