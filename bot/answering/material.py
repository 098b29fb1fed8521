"""What comes with a question besides its text: quoted messages, forwards, pictures, files.

All of it is put before the question as labelled quotations and remarks. Stored as the person's
message are their own words only, with a marker when they quoted something: what others wrote is not
copied into their memory. Getting it takes three seconds at most, and no failure of it keeps the
question from being answered.
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
    """A question as it came: `history` is what the model is given anyway, `talk` what was said in
    the chat lately. Of one that is asked again: `asked_in`, the message in which it was written,
    and `first_read`, what its first answer was given. Of what was said before `told_since_ms` only
    what is quoted is told here."""

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
    """`text` stands before the question (`quotation.with_material`); `images` are for models that
    see. `quoted` is the message that is quoted in `text`. Of that, what files hold costs
    `file_tokens`; of `files`, `unread` gave no text, by their names. `read` are the messages that
    any of this came with, besides the question itself; `texts` what was read, by message_id, also
    of what the question itself brought: "" of a picture."""

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
    """What is stored of the question."""
    return f"{question}\n{QUOTING}" if request.quotes else question


async def gather(services: Services, source: QuestionSource) -> Material:
    """Everything that came with the question, as far as it can be had in time."""
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
    """The texts by message_id; those of one message are one."""
    found: dict[str, str] = {}
    for message_id, text in texts:
        if message_id:
            found[message_id] = f"{found.get(message_id, '')}\n{text}".strip()
    return found


async def _as_first_asked(services: Services, source: QuestionSource) -> QuestionSource:
    """The question with all that it came with, where it is asked again: then its own request is a
    button's. Another question as it is."""
    request, first = source.request, source.asked_in
    if not first:
        return source
    found = await _fetched(services, request, first)
    if not found or found[0].deleted or found[0].chat_id not in ("", request.chat_id):
        return source
    raw, quotes = found[0], request.text.endswith(QUOTING)
    asked = replace(
        request,
        written=Written(first, raw.message_type, raw.parent_id, raw_attachments(raw)),
        # a message gets a thread with the answer to it
        thread_id="" if quotes else raw.thread_id or request.thread_id,
        threaded=request.threaded and not quotes,
    )
    return replace(source, request=asked)


async def _read_first(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files and pictures of the messages that the first answer was given."""
    found = await asyncio.gather(
        *(_fetched(services, source.request, one) for one in source.first_read)
    )
    return [
        (message_id, attachment)
        for message_id, raws in zip(source.first_read, found, strict=True)
        if raws and raws[0].chat_id in ("", source.request.chat_id)
        if raws[0].create_time_ms >= source.told_since_ms
        for attachment in raw_attachments(raws[0])
    ]


async def _sent_before(services: Services, source: QuestionSource) -> list[tuple[str, Attachment]]:
    """The files of the newest message of the thread that brought some, if that is not long ago: a
    file comes without words in Feishu, and the question about it after it."""
    for said in reversed(source.history[-_RECENT:]):
        if said.role == "user" and said.message_id and said.content.startswith(_FILE):
            found = await _fetched(services, source.request, said.message_id)
            if found and found[0].chat_id in ("", source.request.chat_id):
                return [(said.message_id, one) for one in raw_attachments(found[0])]
            return []
    return []


async def _quoted(services: Services, source: QuestionSource) -> _Quoted | None:
    """The message that is answered: one that somebody quotes, or the first of the thread.

    The first of a thread is left out where the model has it already, and where it belongs to what
    somebody else and the bot say to each other.
    """
    request, parent = source.request, source.request.parent_id
    spoken = next((record for record in source.talk if record.message_id == parent), None)
    seen = any(message.message_id == parent for message in source.history)
    if spoken and spoken.content == UNREADABLE_CARD:
        spoken = None
    told = seen or (spoken and not holds_attachment(spoken.content))
    if not request.quotes and told:
        return None
    if own := await _own(services, source.context, parent):
        known = _from_memory(services.people.of(request.tenant_key), own)
        return await _with_attachments(services, request, known)
    if spoken and not spoken.ours:
        known = _Quoted(_label(spoken.author), spoken.content, parent)
        return await _with_attachments(services, request, known)
    found = await _fetched(services, request, parent)
    if not found or found[0].chat_id not in ("", request.chat_id):
        return _UNREAD if request.quotes else None
    return await _from_feishu(services, source, found)


async def _with_attachments(services: Services, request: TurnRequest, known: _Quoted) -> _Quoted:
    """What is quoted, with its files and pictures, of which only Feishu has the keys."""
    if not known.message_id or not holds_attachment(known.text):
        return known
    found = await _fetched(services, request, known.message_id)
    if not found or found[0].chat_id not in ("", request.chat_id):
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
    services: Services, source: QuestionSource, found: Sequence[RawMessage]
) -> _Quoted | None:
    raw = found[0]
    ours = raw.sender_id == services.settings.feishu_app_id
    to_bot = any(mention.open_id == source.bot.open_id for mention in raw.mentions)
    untold = raw.create_time_ms < source.told_since_ms
    if not source.request.quotes and (ours or to_bot or untold):
        return None
    people = {one.sender_id for one in found if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    label = _label(names.known.get(raw.sender_id, ""), ours=ours)
    if is_forward(raw.message_type):
        return _Quoted(f"{label}, forwarded", forwarded_text(found, names.known), raw.message_id)
    return _Quoted(label, raw_text(raw, names.known), raw.message_id, raw_attachments(raw))


async def _forwarded(services: Services, source: QuestionSource) -> tuple[str, str]:
    """The forwarded messages as a part of the prompt, and their text."""
    found = await _fetched(services, source.request, source.request.message_id)
    if len(found) < 2:
        return _unreadable(services, source.request, "the forwarded messages"), ""
    people = {one.sender_id for one in found if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    text = forwarded_text(found, names.known)
    return quotation("Forwarded messages", text), text


async def _original_card(services: Services, source: QuestionSource) -> str:
    """A card whose request shows nothing but the placeholder for old clients, as it was sent."""
    found = await _fetched(services, source.request, source.request.message_id)
    names = services.people.of(source.request.tenant_key)
    text = raw_text(found[0], names.known) if found else UNREADABLE_CARD
    return quotation("Card", text) if text != UNREADABLE_CARD else ""


async def _fetched(services: Services, request: TurnRequest, message_id: str) -> list[RawMessage]:
    try:
        async with asyncio.timeout(_QUOTE_WITHIN_S):
            if await is_refused(services.feishu, services.denials, _DENIAL, request.chat_type):
                return []
            found = await services.feishu.get_message(message_id, user_card_content=True)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            services.denials.note(_DENIAL, request.chat_type, exc)
        log.info("incoming.message_unavailable", error=type(exc).__name__)
        return []
    services.denials.allow(_DENIAL, request.chat_type)
    return found


def _shown(services: Services, request: TurnRequest, quoted: _Quoted) -> str:
    if quoted is _UNREAD:
        return _unreadable(services, request, "the quoted message")
    return quotation(quoted.label, quoted.text)


def _unreadable(services: Services, request: TurnRequest, what: str) -> str:
    """A remark that `what` could not be read; with the reason where it is a missing scope."""
    if request.chat_type != "p2p" and services.denials.lacks(GROUP_MESSAGES):
        return remark(
            f"{what} could not be read: in groups that needs the Feishu scope {GROUP_MESSAGES}, "
            "which an administrator can grant; say so"
        )
    return remark(f"{what} could not be read; say so")


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


def media_type(data: bytes) -> str:
    """The type as the first bytes tell it; "" for what is no picture that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS.items() if data.startswith(start)), "")
