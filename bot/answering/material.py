"""What comes with a question besides its text: quoted messages, forwards, pictures, files.

All of it stands before the question as labelled quotations and remarks. The memory stores only the
person's own words, with a marker when they quoted something, so other people's words are not copied
into that person's memory. Fetching the material takes three seconds at most. If fetching fails, the
question is answered without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from bot.agents.prompts.prompt import Image, short_name
from bot.agents.prompts.quotation import quotation, remark
from bot.answering.attachments import attached_files
from bot.answering.deduplication import Quoted
from bot.feishu import markup
from bot.feishu.content import UNREADABLE_CARD, Attachment, holds_attachment
from bot.feishu.denials import is_refused
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.manifest import GROUP_MESSAGES
from bot.feishu.models import RawMessage
from bot.feishu.received import forwarded_text, is_forward, raw_attachments, raw_text
from bot.files.reading import Reason
from bot.files.refusals import MOST_FILES
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest, Written
from bot.people.names import Names
from bot.services import Services
from bot.text.card_names import from_card
from bot.text.roster import Person
from memory.errors import StoreError, StoreUnavailable
from memory.models import StoredMessage
from memory.scope import AgentMemoryContext

log = structlog.get_logger()

QUOTING = "[quoting another message]"
MOST_IMAGES = 4
MOST_BYTES = 10_000_000
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

_FILE = "[file: "
_RECENT = 7  # messages, the question among them
_WITHIN_S = 3.0
_QUOTE_WITHIN_S = 1.5
_DENIAL = "get_message"


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """A question as it arrived.

    `history` is what the model sees anyway, `talk` the recent messages of the chat. For a question
    that is asked again, `asked_in` is the message in which it was written, and `first_read` the
    messages that its first answer was given. Of messages older than `told_since_ms` (ms since
    epoch), the model sees only those that the question quotes.
    """

    request: TurnRequest
    context: AgentMemoryContext
    bot: Person
    history: Sequence[StoredMessage] = ()
    talk: Sequence[MessageRecord] = ()
    first_read: Sequence[str] = ()
    asked_in: str = ""
    told_since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Material:
    """What came with a question, ready for the prompt.

    `text` stands before the question (`quotation.with_material`); `images` are for models that can
    see. `quoted` is the message that `text` quotes. The content of files costs `file_tokens` of
    `text`. `files` counts the files that were loaded, and `unread` names those without readable
    text. `read` are the ids of the messages that any of this came with, except the question's.
    `texts` holds what was read, by message_id, the question's included; a picture has "".
    """

    text: str = ""
    images: tuple[Image, ...] = ()
    quoted: Quoted | None = None
    file_tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()
    read: tuple[str, ...] = ()
    files: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


TAKEN_BACK = Material(remark("what the question quotes or came with was taken back; say so"))


@dataclass(frozen=True, slots=True)
class _Quoted:
    label: str
    text: str
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()


_UNREAD = _Quoted("", "")


def stored_text(request: TurnRequest, question: str) -> str:
    """The question as the memory stores it."""
    return f"{question}\n{QUOTING}" if request.quotes else question


async def gather(services: Services, source: QuestionSource) -> Material:
    """Everything that came with the question and could be fetched in time."""
    deadline = asyncio.get_running_loop().time() + _WITHIN_S
    source = await _as_first_asked(services, source)
    request = source.request
    quoted = await _quoted(services, source) if request.parent_id else None
    parts = [_shown(services, request, quoted)] if quoted else []
    texts = [(quoted.message_id, quoted.text)] if quoted else []
    if is_forward(request.message_type):
        part, forwarded = await _forwarded(services, source)
        parts.append(part)
        texts.append((request.message_id, forwarded))
    elif request.text == UNREADABLE_CARD and (card := await _original_card(services, source)):
        parts.append(card)
        texts.append((request.message_id, card))
    attached = [(request.message_id, one) for one in request.attachments]
    if quoted:
        attached += [(quoted.message_id, one) for one in quoted.attachments]
    if not attached:
        attached = await (_read_first if source.first_read else _sent_before)(services, source)
    parts += [_described(one) for _, one in attached if one.kind not in ("image", "file")]
    sent = [pair for pair in attached if pair[1].kind == "file"]
    files = await attached_files(services, request, sent)
    pictures = [(message_id, one.key) for message_id, one in attached if one.kind == "image"]
    images, remarks = await _images(services, pictures, deadline)
    pictured = [(message_id, "") for message_id, _ in pictures] if images else []
    readable = Quoted(request.parent_id, quoted.text) if quoted and quoted.text else None
    text = "\n\n".join([*parts, *files.parts, *remarks])
    texts = [pair for pair in (*texts, *files.texts) if pair[1].strip()] + pictured
    came_with = {message_id for message_id, _ in attached} | {quoted.message_id if quoted else ""}
    read = tuple(sorted(came_with - {"", request.message_id}))
    loaded = min(len(sent), MOST_FILES)
    together = _together(texts)
    return Material(text, images, readable, files.tokens, files.unread, read, loaded, together)


def _together(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts by message_id; several texts of one message are joined."""
    joined: dict[str, str] = {}
    for message_id, text in texts:
        if message_id:
            joined[message_id] = f"{joined.get(message_id, '')}\n{text}".strip()
    return joined


async def _as_first_asked(services: Services, source: QuestionSource) -> QuestionSource:
    """A question that is asked again, with all that it first came with. Others stay unchanged.

    The request of a repeated question comes from a button, so it carries no material itself.
    """
    request, first = source.request, source.asked_in
    if not first:
        return source
    messages = await _fetched(services, request, first)
    if not messages or messages[0].deleted or messages[0].chat_id not in ("", request.chat_id):
        return source
    raw, quotes = messages[0], request.text.endswith(QUOTING)
    first_request = replace(
        request,
        written=Written(first, raw.message_type, raw.parent_id, raw_attachments(raw)),
        # the answer to a message opens a thread, which the message then belongs to
        thread_id="" if quotes else raw.thread_id or request.thread_id,
        threaded=request.threaded and not quotes,
    )
    return replace(source, request=first_request)


async def _read_first(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files and pictures of the messages that the first answer was made from."""
    fetched = await asyncio.gather(
        *(_fetched(services, source.request, one) for one in source.first_read)
    )
    return [
        (message_id, attachment)
        for message_id, raws in zip(source.first_read, fetched, strict=True)
        if raws and raws[0].chat_id in ("", source.request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in raw_attachments(raws[0])
    ]


async def _sent_before(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files of the newest message in the thread that has any, if it is recent.

    Feishu sends a file without words, so the question about it comes in the next message.
    """
    for message in reversed(source.history[-_RECENT:]):
        if message.role == "user" and message.message_id and message.content.startswith(_FILE):
            fetched = await _fetched(services, source.request, message.message_id)
            if fetched and fetched[0].chat_id in ("", source.request.chat_id):
                return [(message.message_id, one) for one in raw_attachments(fetched[0])]
            return []
    return []


async def _quoted(services: Services, source: QuestionSource) -> _Quoted | None:
    """The message that the question replies to: a quoted one, or the first of the thread.

    The first of a thread is left out where the model sees it anyway, or where it belongs to the
    bot's exchange with somebody else.
    """
    request, parent = source.request, source.request.parent_id
    in_talk = next((record for record in source.talk if record.message_id == parent), None)
    seen = any(message.message_id == parent for message in source.history)
    if in_talk and in_talk.content == UNREADABLE_CARD:
        in_talk = None
    told = seen or (in_talk and not holds_attachment(in_talk.content))
    if not request.quotes and told:
        return None
    if own := await _own(services, source.context, parent):
        known = _from_memory(services.people.of(request.tenant_key), own)
        return await _with_attachments(services, request, known)
    if in_talk and not in_talk.ours:
        known = _Quoted(_label(in_talk.author), in_talk.content, parent)
        return await _with_attachments(services, request, known)
    messages = await _fetched(services, request, parent)
    if not messages or messages[0].chat_id not in ("", request.chat_id):
        return _UNREAD if request.quotes else None
    return await _from_feishu(services, source, messages)


async def _with_attachments(services: Services, request: TurnRequest, known: _Quoted) -> _Quoted:
    """The quoted message with its files and pictures. Only Feishu knows their keys."""
    if not known.message_id or not holds_attachment(known.text):
        return known
    messages = await _fetched(services, request, known.message_id)
    if not messages or messages[0].chat_id not in ("", request.chat_id):
        return known
    return replace(known, attachments=raw_attachments(messages[0]))


async def _own(
    services: Services, context: AgentMemoryContext, message_id: str
) -> StoredMessage | None:
    try:
        return await services.store.said(context, message_id)
    except StoreUnavailable as exc:
        log.warning("incoming.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("incoming.quote_refused", error=type(exc).__name__, code=exc.code)
    return None


def _from_memory(names: Names, own: StoredMessage) -> _Quoted:
    if own.role == "user":
        return _Quoted(_label(own.actor_name), own.content, own.message_id or "")
    text = from_card(own.content, names.known, unescape=markup.unescape)
    return _Quoted(_label("", ours=True), text, own.message_id or "")


async def _from_feishu(
    services: Services, source: QuestionSource, messages: Sequence[RawMessage]
) -> _Quoted | None:
    raw = messages[0]
    ours = raw.sender_id == services.settings.feishu_app_id
    to_bot = any(mention.open_id == source.bot.open_id for mention in raw.mentions)
    untold = raw.create_time_ms < source.told_since_ms
    if not source.request.quotes and (ours or to_bot or untold):
        return None
    people = {one.sender_id for one in messages if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    label = _label(names.known.get(raw.sender_id, ""), ours=ours)
    if is_forward(raw.message_type):
        return _Quoted(f"{label}, forwarded", forwarded_text(messages, names.known), raw.message_id)
    return _Quoted(label, raw_text(raw, names.known), raw.message_id, raw_attachments(raw))


async def _forwarded(services: Services, source: QuestionSource) -> tuple[str, str]:
    """The forwarded messages as a part of the prompt, and their text."""
    messages = await _fetched(services, source.request, source.request.message_id)
    if len(messages) < 2:
        return _unreadable(services, source.request, "the forwarded messages"), ""
    people = {one.sender_id for one in messages if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    text = forwarded_text(messages, names.known)
    return quotation("Forwarded messages", text), text


async def _original_card(services: Services, source: QuestionSource) -> str:
    """The text of a card as it was sent. Its event holds only the placeholder for old clients."""
    messages = await _fetched(services, source.request, source.request.message_id)
    names = services.people.of(source.request.tenant_key)
    text = raw_text(messages[0], names.known) if messages else UNREADABLE_CARD
    return quotation("Card", text) if text != UNREADABLE_CARD else ""


async def _fetched(services: Services, request: TurnRequest, message_id: str) -> list[RawMessage]:
    try:
        async with asyncio.timeout(_QUOTE_WITHIN_S):
            if await is_refused(services.feishu, services.denials, _DENIAL, request.chat_type):
                return []
            messages = await services.feishu.get_message(message_id, user_card_content=True)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            services.denials.note(_DENIAL, request.chat_type, exc)
        log.info("incoming.message_unavailable", error=type(exc).__name__)
        return []
    services.denials.allow(_DENIAL, request.chat_type)
    return messages


def _shown(services: Services, request: TurnRequest, quoted: _Quoted) -> str:
    if quoted is _UNREAD:
        return _unreadable(services, request, "the quoted message")
    return quotation(quoted.label, quoted.text)


def _unreadable(services: Services, request: TurnRequest, what: str) -> str:
    """A remark that `what` could not be read. It names the missing scope where that is why."""
    if request.chat_type != "p2p" and services.denials.lacks(GROUP_MESSAGES):
        return remark(
            f"{what} could not be read: in groups that needs the Feishu scope {GROUP_MESSAGES}, "
            "which an administrator can grant; say so"
        )
    return remark(f"{what} could not be read; say so")


async def _images(
    services: Services, pictures: Sequence[tuple[str, str]], deadline: float
) -> tuple[tuple[Image, ...], list[str]]:
    """The pictures that the model will see, and remarks on those that it will not."""
    if not pictures:
        return (), []
    if not services.sight.sees:
        return (), [remark(f"{len(pictures)} image(s) not shown: you cannot see images; say so")]
    images: list[Image] = []
    remarks: list[str] = []
    for number, (message_id, key) in enumerate(pictures, 1):
        room = MOST_BYTES - sum(len(image.data) for image in images)
        reason = "there are too many" if number > MOST_IMAGES else ""
        data = b"" if reason else await _downloaded(services, message_id, key, room, deadline)
        kind = media_type(data)
        if kind:
            images.append(Image(data, kind))
        else:
            reason = reason or "it is too large or could not be loaded"
            remarks.append(remark(f"image {number} of {len(pictures)} not shown: {reason}"))
    return tuple(images), remarks


async def _downloaded(
    services: Services, message_id: str, key: str, room: int, deadline: float
) -> bytes:
    try:
        async with asyncio.timeout_at(deadline):
            return await services.feishu.download_resource(message_id, key, "image", room)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("incoming.image_unavailable", error=type(exc).__name__)
        return b""


def _described(attachment: Attachment) -> str:
    name = f' "{short_name(attachment.name)}"' if attachment.name else ""
    size = f", {attachment.size} bytes" if attachment.size is not None else ""
    return remark(f"{attachment.kind}{name}{size}: you know its name only, not what is in it")


def _label(author: str, *, ours: bool = False) -> str:
    name = "yourself" if ours else short_name(author) or "someone"
    return f"Quoted message of {name}"


def media_type(data: bytes) -> str:
    """The type that the first bytes show; "" if models do not take such a picture."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS.items() if data.startswith(start)), "")
