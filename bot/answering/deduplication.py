"""Nothing stands twice in a prompt: history, quotation, transcript leave it to each other. Pure.

A quotation is never cut, so it holds the text, and history and transcript leave it out. What the
memory holds comes before the transcript: the bot's own record of what it sent is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from bot.feishu import markup
from bot.listening.transcript import MessageRecord
from bot.text.card_names import from_card
from bot.text.slash_commands import parse_addressed
from memory.context import Message
from memory.foreign_text import continued
from memory.models import StoredMessage
from memory.text import one_line

QUOTED_BELOW = "[this message is quoted with the question]"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that is quoted with the question, as the model reads it."""

    message_id: str
    text: str


def without_quoted(
    told: Sequence[Message], stored: Sequence[StoredMessage], quoted: Quoted | None
) -> list[Message]:
    """The messages `told`, made of those `stored`, with a remark in place of the quoted text."""
    if quoted is None:
        return list(told)
    return [_set_aside(one, kept, quoted) for one, kept in zip(told, stored, strict=True)]


def _set_aside(message: Message, stored: StoredMessage, quoted: Quoted) -> Message:
    by_bot = stored.role == "assistant"
    if stored.message_id != quoted.message_id and not (
        by_bot and _holds(message.content, quoted.text)
    ):
        return message
    text = quoted.text if by_bot else continued(quoted.text)
    return replace(message, content=message.content.replace(text, QUOTED_BELOW, 1))


def without_commands(
    records: Iterable[MessageRecord], said: Iterable[MessageRecord], thread: str | None
) -> Iterator[MessageRecord]:
    """The records that are no command and no answer to one among what was `said`. In `thread`,
    which a command may have begun, only what quotes it is known to be its answer."""
    commands = {one.message_id for one in said if _is_command(one)}
    for record in records:
        root = record.root_id if record.root_id != thread else None
        of_command = {record.quotes, root} if record.ours else {record.message_id}
        if not commands & of_command:
            yield record


def _is_command(record: MessageRecord) -> bool:
    """Whether it is one in whatever state the chat is."""
    if record.ours or not record.message_id:
        return False
    says = _known_to_say_command if len(record.content) <= _SHORT else _says_command
    return says(record.content)


def _says_command(content: str) -> bool:
    command = parse_addressed(content)
    return bool(command and not command.only_when_running and not command.only_when_quiet)


# Each question reads the same transcript.
_SHORT = 200
_known_to_say_command = lru_cache(maxsize=4096)(_says_command)


def untold(
    records: Iterable[MessageRecord],
    stored: Sequence[StoredMessage],
    names: Mapping[str, str],
    *,
    bot_name: str,
    quoted: Quoted | None,
) -> tuple[MessageRecord, ...]:
    """Of a transcript what is neither `stored`, and so in the history, nor quoted."""
    ids = {message.message_id for message in stored} | ({quoted.message_id} if quoted else set())
    asked = {(m.actor_id, one_line(m.content)) for m in stored if m.role == "user"}
    askers = {actor_id for actor_id, _ in asked}

    @cache
    def answers() -> list[str]:
        cards = (one.content for one in stored if one.role == "assistant")
        return [from_card(card, names, unescape=markup.unescape) for card in cards]

    def is_told(record: MessageRecord) -> bool:
        if record.message_id and record.message_id in ids:
            return True
        if record.ours:  # one card of several has an id of its own
            return any(_holds(answer, record.content) for answer in answers())
        if record.author_id not in askers:
            return False
        words = one_line(record.content.replace(f"@{bot_name}", "", 1))
        return (record.author_id, words) in asked

    return tuple(record for record in records if not is_told(record))


def _holds(text: str, paragraphs: str) -> bool:
    """Whether whole paragraphs of `text` are these."""
    wanted = paragraphs.strip()
    return bool(wanted) and f"\n\n{wanted}\n\n" in f"\n\n{text.strip()}\n\n"
