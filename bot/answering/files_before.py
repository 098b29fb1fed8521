"""The files and pictures of earlier messages that a question without any is about."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import takewhile

from bot.answering.earlier_messages import recent_messages
from bot.answering.question_source import QuestionSource, fetched
from bot.feishu.content import holds_attachment
from bot.feishu.received import raw_attachments
from bot.feishu.resources import Attachment
from bot.files.refusals import MOST_FILES
from bot.listening.attachment_reference import reference
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from memory.models import StoredMessage

_FILE = re.compile(r"^\[file: ", re.MULTILINE)
_RECENT = 7  # messages, the question among them
_JUST_BEFORE_MS = 300_000


async def read_first(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files and pictures of the messages that the first answer was made from."""
    raw_messages = await asyncio.gather(
        *(fetched(services, source.request, one) for one in source.first_read)
    )
    return [
        (message_id, attachment)
        for message_id, raws in zip(source.first_read, raw_messages, strict=True)
        if raws and raws[0].chat_id in ("", source.request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in raw_attachments(raws[0])
    ]


async def sent_before(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files of the asker's newest message in the thread that has any, if it is recent.

    Feishu sends a file without words, so the question about it comes in the next message.
    """
    for message in reversed(_own_exchanges(source)[-_RECENT:]):
        if message.role == "user" and message.message_id and _FILE.search(message.content):
            files = await fetched(services, source.request, message.message_id)
            if files and files[0].chat_id in ("", source.request.chat_id):
                return [(message.message_id, one) for one in raw_attachments(files[0])]
            return []
    return await _just_before(services, source)


def _own_exchanges(source: QuestionSource) -> list[StoredMessage]:
    """What the asker said to the bot in this thread, or in p2p, and the answers. The window holds
    much more: other people's files are no part of a question that does not name them."""
    request, lines = source.request, source.history
    thread = request.root_of_thread
    if request.chat_type != "p2p" and not thread:
        return []
    start = next((n for n, line in enumerate(lines) if line.message_id == thread), 0)
    asker = request.sender_open_id
    return [one for one in lines[start:] if one.id >= 0 and one.actor_id == asker]


async def _just_before(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """In a group, the files of what was sent just before the question without a mention, where the
    question refers to them: the asker's own, else somebody else's if it names them as files."""
    request = source.request
    how = reference(request.text) if request.chat_type != "p2p" else ""
    pointless = request.quotes or request.written is None or request.origin.kind == "unasked"
    if not how or pointless:
        return []
    recent = source.talk or await recent_messages(services, request, source.bot)
    names_others = how == "named" and services.settings.sharing == "chat"
    before = [one for one in recent if _is_just_before(one, request)][-_RECENT:]
    meant_messages = _files_meant(before, request.sender_open_id, others=names_others)
    files = await asyncio.gather(*(fetched(services, request, one) for one in meant_messages))
    return [
        (raws[0].message_id, attachment)
        for raws in files
        if raws and raws[0].chat_id in ("", request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in raw_attachments(raws[0])
    ]


def _is_just_before(record: MessageRecord, request: TurnRequest) -> bool:
    before_ms = request.create_time_ms - record.timestamp
    thread = request.root_of_thread or None
    here = record.is_in(thread) if thread else record.root_id is None
    in_time = 0 <= before_ms <= _JUST_BEFORE_MS
    return here and in_time and not record.ours and record.message_id != request.message_id


def _files_meant(before: Sequence[MessageRecord], asker: str, *, others: bool) -> list[str]:
    """The ids of the messages with the files that are meant, oldest first: those that the asker
    sent last, with no words after them; else, with `others`, the last that anybody sent."""
    own = [one for one in before if one.author_id == asker]
    file_messages = list(takewhile(lambda one: holds_attachment(one.content), reversed(own)))
    if not file_messages and others:
        file_messages = [one for one in reversed(before) if holds_attachment(one.content)][:1]
    return [one.message_id for one in reversed(file_messages[:MOST_FILES])]
