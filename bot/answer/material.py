"""What comes with a question besides its text: quoted messages, forwards, pictures, files.

All of it is put before the question as labelled quotations and remarks. Stored as the person's
message are their own words only, with a marker when they quoted something: what others wrote is not
copied into their memory. Getting it takes three seconds at most, and no failure of it keeps the
question from being answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from bot.agents.prompt import Image, short_name
from bot.agents.quotation import quotation, remark
from bot.answer.attached import attached_files
from bot.answer.once import Quoted
from bot.feishu import markup
from bot.feishu.content import Attachment, holds_attachment
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.events import MessageEvent
from bot.feishu.models import RawMessage
from bot.feishu.received import forwarded_text, is_forward, raw_attachments, raw_text
from bot.files.reading import Reason
from bot.group.transcript import MessageRecord
from bot.mentions import Person, from_card
from bot.people.names import Names
from bot.services import Services
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
class Source:
    """A question as it came: `history` is what the model is given anyway, `talk` what was said in
    the chat lately. `first_read`: of one that is asked again, what its first answer was given."""

    event: MessageEvent
    context: AgentMemoryContext
    bot: Person
    history: Sequence[StoredMessage] = ()
    talk: Sequence[MessageRecord] = ()
    first_read: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """`text` stands before the question (`quotation.with_material`); `images` are for models that
    see. `quoted` is the message that is quoted in `text`. Of that, what files hold costs
    `file_tokens`; `unread` are files that gave no text, by their names. `read` are the messages
    that any of this came with, besides the question itself."""

    text: str = ""
    images: tuple[Image, ...] = ()
    quoted: Quoted | None = None
    file_tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()
    read: tuple[str, ...] = ()


TAKEN_BACK = Material(remark("what the question quotes or came with was taken back; say so"))


@dataclass(frozen=True, slots=True)
class _Quoted:
    label: str
    text: str
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()


def stored_text(event: MessageEvent, question: str) -> str:
    """What is stored of the question."""
    return f"{question}\n{QUOTING}" if _quotes(event) else question


async def gather(services: Services, source: Source) -> Material:
    """Everything that came with the question, as far as it can be had in time."""
    deadline = asyncio.get_running_loop().time() + _WITHIN_S
    source = await _as_first_asked(services, source)
    event = source.event
    quoted = await _quoted(services, source) if event.parent_id else None
    parts = [quotation(quoted.label, quoted.text)] if quoted else []
    if is_forward(event.message_type):
        parts.append(await _forwarded(services, source))
    attached = [(event.message_id, one) for one in event.attachments]
    if quoted:
        attached += [(quoted.message_id, one) for one in quoted.attachments]
    if not attached:
        attached = await (_read_first if source.first_read else _sent_before)(services, source)
    parts += [_described(one) for _, one in attached if one.kind not in ("image", "file")]
    files = await attached_files(services, [pair for pair in attached if pair[1].kind == "file"])
    pictures = [(message_id, one.key) for message_id, one in attached if one.kind == "image"]
    images, remarks = await _images(services, pictures, deadline)
    readable = Quoted(event.parent_id, quoted.text) if quoted and quoted.text else None
    text = "\n\n".join([*parts, *files.parts, *remarks])
    came_with = {message_id for message_id, _ in attached} | {quoted.message_id if quoted else ""}
    read = tuple(sorted(came_with - {"", event.message_id}))
    return Material(text, images, readable, files.tokens, files.unread, read)


async def _as_first_asked(services: Services, source: Source) -> Source:
    """The question with all that it came with, where it is asked again: then its own event is a
    button's. Another question as it is."""
    event = source.event
    first, again, _ = event.message_id.partition("~again")
    if not again or ":" in first:  # a button was pressed the first time, too
        return source
    found = await _fetched(services, first)
    if not found or found[0].deleted or found[0].chat_id not in ("", event.chat_id):
        return source
    raw = found[0]
    asked = replace(
        event,
        message_id=first,
        message_type=raw.message_type,
        attachments=raw_attachments(raw),
        parent_id=raw.parent_id,
        # a message gets a thread with the answer to it
        thread_id="" if event.text.endswith(QUOTING) else raw.thread_id or event.thread_id,
    )
    return replace(source, event=asked)


async def _read_first(services: Services, source: Source) -> list[tuple[str, Attachment]]:
    """The files and pictures of the messages that the first answer was given."""
    found = await asyncio.gather(*(_fetched(services, one) for one in source.first_read))
    return [
        (message_id, attachment)
        for message_id, raws in zip(source.first_read, found, strict=True)
        if raws and raws[0].chat_id in ("", source.event.chat_id)
        for attachment in raw_attachments(raws[0])
    ]


async def _sent_before(services: Services, source: Source) -> list[tuple[str, Attachment]]:
    """The files of the newest message of the thread that brought some, if that is not long ago: a
    file comes without words in Feishu, and the question about it after it."""
    for said in reversed(source.history[-_RECENT:]):
        if said.role == "user" and said.message_id and said.content.startswith(_FILE):
            found = await _fetched(services, said.message_id)
            if found and found[0].chat_id in ("", source.event.chat_id):
                return [(said.message_id, one) for one in raw_attachments(found[0])]
            return []
    return []


async def _quoted(services: Services, source: Source) -> _Quoted | None:
    """The message that is answered: one that somebody quotes, or the first of the thread.

    The first of a thread is left out where the model has it already, and where it belongs to what
    somebody else and the bot say to each other.
    """
    event, parent = source.event, source.event.parent_id
    spoken = next((record for record in source.talk if record.message_id == parent), None)
    seen = any(message.message_id == parent for message in source.history)
    told = seen or (spoken and not holds_attachment(spoken.content))
    if not _quotes(event) and told:
        return None
    if own := await _own(services, source.context, parent):
        known = _from_memory(services.people.of(event.tenant_key), own)
        return await _with_attachments(services, event, known)
    if spoken and not spoken.ours:
        known = _Quoted(_label(spoken.author), spoken.content, parent)
        return await _with_attachments(services, event, known)
    found = await _fetched(services, parent)
    if not found or found[0].chat_id not in ("", event.chat_id):
        return _Quoted("A quoted message that could not be read", "") if _quotes(event) else None
    return await _from_feishu(services, source, found)


async def _with_attachments(services: Services, event: MessageEvent, known: _Quoted) -> _Quoted:
    """What is quoted, with its files and pictures, of which only Feishu has the keys."""
    if not known.message_id or not holds_attachment(known.text):
        return known
    found = await _fetched(services, known.message_id)
    if not found or found[0].chat_id not in ("", event.chat_id):
        return known
    return replace(known, attachments=raw_attachments(found[0]))


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
    services: Services, source: Source, found: Sequence[RawMessage]
) -> _Quoted | None:
    raw = found[0]
    ours = raw.sender_id == services.settings.feishu_app_id
    to_bot = any(mention.open_id == source.bot.open_id for mention in raw.mentions)
    if not _quotes(source.event) and (ours or to_bot or raw.sender_type == "app"):
        return None
    people = {one.sender_id for one in found if one.sender_type == "user"}
    names = services.people.of(source.event.tenant_key)
    await names.look_up(people)
    label = _label(names.known.get(raw.sender_id, ""), ours=ours)
    if is_forward(raw.message_type):
        return _Quoted(f"{label}, forwarded", forwarded_text(found, names.known), raw.message_id)
    return _Quoted(label, raw_text(raw, names.known), raw.message_id, raw_attachments(raw))


async def _forwarded(services: Services, source: Source) -> str:
    found = await _fetched(services, source.event.message_id)
    if len(found) < 2:
        return remark("the forwarded messages could not be read; say so")
    people = {one.sender_id for one in found if one.sender_type == "user"}
    names = services.people.of(source.event.tenant_key)
    await names.look_up(people)
    return quotation("Forwarded messages", forwarded_text(found, names.known))


async def _fetched(services: Services, message_id: str) -> list[RawMessage]:
    if services.denials.stands(_DENIAL):
        return []
    try:
        async with asyncio.timeout(_QUOTE_WITHIN_S):
            return await services.feishu.get_message(message_id, user_card_content=True)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            services.denials.note(_DENIAL)
        log.info("incoming.message_unavailable", error=type(exc).__name__)
        return []


async def _images(
    services: Services, pictures: Sequence[tuple[str, str]], deadline: float
) -> tuple[tuple[Image, ...], list[str]]:
    """The pictures that a model can be shown, and remarks on those that it is not."""
    if not pictures:
        return (), []
    if not services.settings.openai_vision:
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


def _quotes(event: MessageEvent) -> bool:
    """Whether the person picked the message out; in a thread every message hangs under its root."""
    return bool(event.parent_id) and not event.thread_id


def media_type(data: bytes) -> str:
    """The type as the first bytes tell it; "" for what is no picture that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS.items() if data.startswith(start)), "")
