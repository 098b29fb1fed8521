"""Reads the files and voice messages that a question comes with or points at.

In a private chat each is recognised. In a group nobody can be mentioned in one, so it is heard like
a line without a mention, where the bot follows the talk."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import takewhile

import structlog

from bot.agents.prompts.prompt import quotation, remark
from bot.answering.question import Turn, turn_language
from bot.answering.quoted_messages import QuestionSource, fetched_messages
from bot.answering.request_chat import RequestChat
from bot.answering.texts import say
from bot.feishu.content import holds_attachment
from bot.feishu.errors import Action, FeishuError, FeishuFailure, ResourceTooLarge, is_still_refused
from bot.feishu.fields import Attachment
from bot.feishu.manifest import SPEECH
from bot.feishu.models import message_attachments
from bot.files.reading import (
    FILE_SECONDS,
    MOST_FILES,
    MOST_VOICE_BYTES,
    MOST_VOICE_SECONDS,
    NoReadingSlot,
    Read,
    ReadingLimits,
    Reason,
    Unread,
    VoicePieces,
    convert_voice,
    is_readable,
    refusal_text,
)
from bot.listening.replies import reference
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.process.concurrency import without_slot
from bot.services import Services
from bot.text.file_names import safe_name
from bot.text.languages import Language
from memory.context import estimate_tokens
from memory.models import OpenTurn, StoredMessage, refusal_outcome

log = structlog.get_logger()
_LOADED_WITHIN_S = 10.0
_CHARACTERS_A_TOKEN = 4

_FILE = re.compile(r"^\[file: ", re.MULTILINE)
_RECENT = 7  # messages, the question among them
_JUST_BEFORE_MS = 300_000

AUDIO = "audio"
_RECOGNITION_DENIAL = "recognise_speech"
_VOICE_LOADED_WITHIN_S = 10.0
_RECOGNISED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """`parts` stand before the question and cost about `tokens`; `unread` gave no text; `texts` are
    what was read, each with the message_id of its file."""

    parts: tuple[str, ...] = ()
    tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()


def limits_of(services: Services) -> ReadingLimits:
    """What a file may be and cost."""
    settings = services.settings
    characters = settings.file_token_budget * _CHARACTERS_A_TOKEN
    return ReadingLimits(settings.file_max_mb, FILE_SECONDS, characters)


async def attached_files(
    chat: RequestChat, files: Sequence[tuple[str, Attachment]]
) -> AttachedFiles:
    """What is in `files`, pairs of message_id and attachment, in their order."""
    if not files:
        return AttachedFiles()
    services = chat.services
    limits, unique_files = limits_of(services), list(dict.fromkeys(files))
    with without_slot():
        read = await asyncio.gather(
            *(_read(chat, *pair, limits) for pair in unique_files[:MOST_FILES]),
        )
    parts, unread, texts, tokens = [], [], [], 0
    for (message_id, one), result in zip(
        unique_files, [*read, *[Unread("many")] * len(unique_files)], strict=False
    ):
        name = safe_name(one.name)
        if isinstance(result, Unread):
            unread.append((name, result.reason))
            why = refusal_text(name, result.reason, limits, "en")
            parts.append(remark(f"{why} You know its name only, not what is in it: say so"))
            continue
        part = _quote_file(name, result, services.settings.file_token_budget - tokens)
        texts.append((message_id, result.text))
        tokens += estimate_tokens(part)
        parts.append(part)
    return AttachedFiles(tuple(parts), tokens, tuple(unread), tuple(texts))


async def _read(
    chat: RequestChat, message_id: str, file: Attachment, limits: ReadingLimits
) -> Read | Unread:
    most = limits.megabytes * 1024 * 1024
    if not most:
        return Unread("off")
    if not is_readable(file.name):  # nothing is loaded for it
        return Unread("kind")
    if file.size is not None and file.size > most:
        return Unread("size")
    services = chat.services
    try:
        async with _reading_slot(chat, limits):
            data = await _load_file(services, message_id, file.key, most)
            if isinstance(data, Unread):
                return data
            return await services.files.read(file.name, data, limits)
    except NoReadingSlot:
        return Unread("busy")


def _reading_slot(chat: RequestChat, limits: ReadingLimits) -> AbstractAsyncContextManager[None]:
    person = f"{chat.asker.tenant_key} {chat.asker.open_id}"
    return chat.services.files.place(person, chat.request.chat_id, limits)


async def _load_file(services: Services, message_id: str, key: str, most: int) -> bytes | Unread:
    try:
        async with asyncio.timeout(_LOADED_WITHIN_S):
            return await services.feishu.download_resource(message_id, key, "file", most)
    except ResourceTooLarge:
        return Unread("size")
    except (TimeoutError, FeishuFailure) as exc:
        log.info("incoming.file_unavailable", error=type(exc).__name__)
        return Unread("unavailable")


def _quote_file(name: str, read: Read, budget_tokens: int) -> str:
    """The text as far as it fits; the model is told where it ends."""
    cost = max(1, estimate_tokens(read.text))
    fits = cost <= budget_tokens
    text = read.text if fits else read.text[: len(read.text) * max(budget_tokens, 0) // cost]
    whole = "" if fits and not read.cut else ", its beginning only: say so where it matters"
    remarks = "".join(f", {one}: say so where it matters" for one in read.remarks)
    return quotation(f'Text of the file "{name}"{whole}{remarks}', text, longest=len(text))


async def first_read_files(
    services: Services, source: QuestionSource
) -> list[tuple[str, Attachment]]:
    """The files and pictures of the messages that the first answer was made from."""
    raw_messages = await asyncio.gather(
        *(fetched_messages(services, source.request, one) for one in source.first_read)
    )
    return [
        (message_id, attachment)
        for message_id, raws in zip(source.first_read, raw_messages, strict=True)
        if raws and raws[0].chat_id in ("", source.request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in message_attachments(raws[0])
    ]


async def files_sent_before(
    services: Services, source: QuestionSource
) -> list[tuple[str, Attachment]]:
    """The files of the asker's newest message in the thread that has any, if it is recent.

    Feishu sends a file without words, so the question about it comes in the next message.
    """
    for message in reversed(_own_exchanges(source)[-_RECENT:]):
        if message.role == "user" and message.message_id and _FILE.search(message.content):
            files = await fetched_messages(services, source.request, message.message_id)
            if files and files[0].chat_id in ("", source.request.chat_id):
                return [(message.message_id, one) for one in message_attachments(files[0])]
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
    recent = source.talk or await source.chat.recent_messages()
    names_others = how == "named" and services.settings.sharing == "chat"
    before = [one for one in recent if _is_just_before(one, request)][-_RECENT:]
    meant_messages = _files_meant(before, request.sender_open_id, others=names_others)
    files = await asyncio.gather(
        *(fetched_messages(services, request, one) for one in meant_messages)
    )
    return [
        (raws[0].message_id, attachment)
        for raws in files
        if raws and raws[0].chat_id in ("", request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in message_attachments(raws[0])
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


@dataclass(frozen=True, slots=True)
class UnheardVoice:
    """Why a voice message has no words: long, damaged, busy, unavailable, unclear, scope, refused.
    `code` is Feishu's, of a refusal."""

    reason: str
    code: int = 0


async def with_recognised_words(chat: RequestChat) -> tuple[RequestChat, UnheardVoice | None]:
    """The request with what was said in its voice message as its text; else as it is, and why."""
    request = chat.request
    written_message = request.written
    recordings = [one for one in request.attachments if one.kind == AUDIO]
    is_heard = request.chat_type == "p2p" or chat.is_followed
    if written_message is None or not recordings or not is_heard:
        return chat, None
    words = await voice_words(chat, request.message_id, recordings[0])
    if isinstance(words, UnheardVoice):
        log.info("voice.unheard", reason=words.reason, code=words.code)
        return chat, words
    written_message = replace(written_message, attachments=(), template=words)
    request = replace(request, text=words, written=written_message)
    return replace(chat, request=request), None


async def voice_words(chat: RequestChat, message_id: str, voice: Attachment) -> str | UnheardVoice:
    """What is said in a voice message of that id."""
    services = chat.services
    if (voice.duration_ms or 0) > MOST_VOICE_SECONDS * 1000:
        return UnheardVoice("long")
    try:
        if await is_still_refused(services.feishu, services.denials, _RECOGNITION_DENIAL):
            return UnheardVoice("scope")
        pieces = await _pieces(chat, message_id, voice)
        if not isinstance(pieces, VoicePieces):
            return UnheardVoice(pieces)
        with without_slot():
            async with asyncio.timeout(_RECOGNISED_WITHIN_S):
                texts = await asyncio.gather(*map(services.feishu.speech.recognise, pieces.pieces))
    except ResourceTooLarge:
        return UnheardVoice("long")
    except (TimeoutError, FeishuFailure) as exc:
        return _unheard_answer(services, exc)
    services.denials.allow(_RECOGNITION_DENIAL)
    return " ".join(filter(None, texts)) or UnheardVoice("unclear")


def unheard_sentence(unheard: UnheardVoice, reply_language: Language) -> str:
    """One sentence for who sent it, with what can be done."""
    minutes = MOST_VOICE_SECONDS // 60
    return say(
        f"voice-{unheard.reason}",
        reply_language,
        minutes=minutes,
        scope=SPEECH,
        code=unheard.code,
    )


class UnheardVoiceAnswer:
    """Answers a voice message that has no words (`bot.answering.answering.Answering`)."""

    def __init__(self, unheard: UnheardVoice) -> None:
        self._unheard = unheard

    async def __call__(self, services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
        text = unheard_sentence(self._unheard, turn_language(services, turn, open_turn))
        return Reply(text, means=refusal_outcome("unreadable"))


async def _pieces(chat: RequestChat, message_id: str, voice: Attachment) -> VoicePieces | str:
    services = chat.services
    try:
        with without_slot():
            async with _reading_slot(chat, limits_of(services)):
                async with asyncio.timeout(_VOICE_LOADED_WITHIN_S):
                    data = await services.feishu.download_resource(
                        message_id, voice.key, "file", MOST_VOICE_BYTES
                    )
                return await convert_voice(data)
    except NoReadingSlot:
        return "busy"


def _unheard_answer(services: Services, exc: BaseException) -> UnheardVoice:
    if not isinstance(exc, FeishuError):
        return UnheardVoice("unavailable")
    if exc.action is Action.ALERT:
        services.denials.note(_RECOGNITION_DENIAL, "", exc)
        return UnheardVoice("scope")
    return UnheardVoice("unavailable" if exc.action.may_pass else "refused", exc.code)
