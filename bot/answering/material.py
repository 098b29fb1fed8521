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

from bot.agents.prompts.prompt import Image, quotation, remark, short_name
from bot.answering.attachments import (
    AUDIO,
    UnheardVoice,
    attached_files,
    files_sent_before,
    first_read_files,
    unheard_sentence,
    voice_words,
)
from bot.answering.prompt_history import PromptMaterial
from bot.answering.quoted_messages import (
    QuestionSource,
    fetched_messages,
    lines_above,
    quotation_chain,
    shown_quotation,
    unreadable_remark,
)
from bot.answering.request_chat import RequestChat
from bot.answering.window import QUOTING, LineAbove, Quoted
from bot.feishu.content import UNREADABLE_CARD
from bot.feishu.errors import FeishuFailure, ResourceTooLarge
from bot.feishu.fields import Attachment
from bot.feishu.models import forward_text, is_forward, message_attachments, message_text
from bot.files.reading import MOST_FILES, Reason
from bot.listening.turn_request import TurnRequest, WrittenQuestion
from bot.services import Services

log = structlog.get_logger()

MOST_IMAGES = 4
MOST_BYTES = 10_000_000
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

_OTHERS = {
    **dict.fromkeys((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"), "TIFF"),
    **dict.fromkeys((b"\xff\x0a", b"\x00\x00\x00\x0cJXL "), "JPEG XL"),
    **dict.fromkeys((b"\xff\x4f\xff\x51", b"\x00\x00\x00\x0cjP  "), "JPEG 2000"),
    b"BM": "BMP",
    b"\x00\x00\x01\x00": "ICO",
    b"8BPS": "PSD",
    b"%PDF-": "PDF",
}
_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "HEIC"),
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
}
_SHARED_BRANDS = (b"mif1", b"msf1")  # of both, and of others: ISO/IEC 23008-12
_WITHIN_S = 3.0
_MOST_VOICES = 2
_READ = ("image", "file", AUDIO)


@dataclass(frozen=True, slots=True)
class Material(PromptMaterial):
    """What came with a question, ready for the prompt, and how it was read.

    The content of files costs `file_tokens` of `text`. `files` counts the files that were loaded,
    and `unread` names those without readable text. `read` are the ids of the messages that any of
    this came with, except the question's. `texts` holds what was read, by message_id, the
    question's included; a picture has "".
    """

    file_tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()
    read: tuple[str, ...] = ()
    files: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


TAKEN_BACK = Material(remark("what the question quotes or came with was taken back; say so"))


def stored_text(request: TurnRequest, question: str) -> str:
    """The question as the memory stores it."""
    return f"{question}\n{QUOTING}" if request.quotes else question


async def gather_material(services: Services, source: QuestionSource) -> Material:
    """Everything that came with the question and could be fetched in time."""
    deadline = asyncio.get_running_loop().time() + _WITHIN_S
    source = await _as_first_asked(services, source)
    request = source.request
    chain = await quotation_chain(services, source, deadline)
    parts = [shown_quotation(services, request, *numbered) for numbered in enumerate(chain)]
    texts = [(one.message_id, one.text) for one in chain]
    if is_forward(request.message_type):
        part, forwarded_texts = await _forwarded_messages(services, source)
        parts.append(part)
        texts.append((request.message_id, forwarded_texts))
    elif request.text == UNREADABLE_CARD and (card := await _original_card(services, source)):
        parts.append(card)
        texts.append((request.message_id, card))
    attachments = [(request.message_id, one) for one in request.attachments]
    attachments += [(one.message_id, attachment) for one in chain for attachment in one.attachments]
    if not attachments:
        attachments = await (first_read_files if source.first_read else files_sent_before)(
            services, source
        )
    parts += [_describe_attachment(one) for _, one in attachments if one.kind not in _READ]
    voices = [pair for pair in attachments if pair[1].kind == AUDIO][:_MOST_VOICES]
    for message_id, voice in voices:
        part, words = await _recognised_words(source.chat, message_id, voice)
        parts.append(part)
        texts.append((message_id, words))
    sent_files = [pair for pair in attachments if pair[1].kind == "file"]
    files = await attached_files(source.chat, sent_files)
    pictures = [(message_id, one.key) for message_id, one in attachments if one.kind == "image"]
    images, remarks = await _images(services, pictures, deadline)
    picture_ids = [(message_id, "") for message_id, _ in pictures] if images else []
    readable = Quoted(request.parent_id, chain[0].text) if chain and chain[0].text else None
    above = await lines_above(services, source, deadline)
    texts += [(one.message_id, one.text) for one in above]
    text = "\n\n".join([*parts, *files.parts, *remarks])
    texts = [pair for pair in (*texts, *files.texts) if pair[1].strip()] + picture_ids
    came_with = {message_id for message_id, _ in attachments}
    came_with |= {one.message_id for one in (*chain, *above)}
    read = tuple(sorted(came_with - {"", request.message_id}))
    loaded_count = min(len(sent_files), MOST_FILES)
    shortened_texts = _within_budget(texts)
    return Material(
        text,
        images,
        readable,
        {one.message_id: LineAbove(one.author, one.text) for one in above},
        files.tokens,
        files.unread,
        read,
        loaded_count,
        shortened_texts,
    )


async def _recognised_words(
    chat: RequestChat, message_id: str, voice: Attachment
) -> tuple[str, str]:
    """A voice message that is asked about, as a part of the prompt, and its words."""
    words = await voice_words(chat, message_id, voice)
    if isinstance(words, UnheardVoice):
        return remark(
            f"the voice message was not heard: {unheard_sentence(words, 'en')} Say so"
        ), ""
    return quotation("Words of the voice message", words), words


def _within_budget(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts by message_id; several texts of one message are joined."""
    texts_by_message: dict[str, str] = {}
    for message_id, text in texts:
        if message_id:
            texts_by_message[message_id] = f"{texts_by_message.get(message_id, '')}\n{text}".strip()
    return texts_by_message


async def _as_first_asked(services: Services, source: QuestionSource) -> QuestionSource:
    """A question that is asked again, with all that it first came with. Others stay unchanged.

    The request of a repeated question comes from a button, so it carries no material itself.
    """
    request, first = source.request, source.asked_in
    if not first:
        return source
    messages = await fetched_messages(services, request, first)
    if not messages or messages[0].deleted or messages[0].chat_id not in ("", request.chat_id):
        return source
    raw, quotes = messages[0], request.text.endswith(QUOTING)
    first_request = replace(
        request,
        written=WrittenQuestion(first, raw.message_type, raw.parent_id, message_attachments(raw)),
        # the answer to a message opens a thread, which the message then belongs to
        thread_id="" if quotes else raw.thread_id or request.thread_id,
        threaded=request.threaded and not quotes,
    )
    return replace(source, chat=replace(source.chat, request=first_request))


async def _forwarded_messages(services: Services, source: QuestionSource) -> tuple[str, str]:
    """The forwarded messages as a part of the prompt, and their text."""
    messages = await fetched_messages(services, source.request, source.request.message_id)
    if len(messages) < 2:
        return unreadable_remark(services, source.request, "the forwarded messages"), ""
    people = {one.sender_id for one in messages if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    text = forward_text(messages, names.known)
    return quotation("Forwarded messages", text), text


async def _original_card(services: Services, source: QuestionSource) -> str:
    """The text of a card as it was sent. Its event holds only the placeholder for old clients."""
    messages = await fetched_messages(services, source.request, source.request.message_id)
    names = services.people.of(source.request.tenant_key)
    text = message_text(messages[0], names.known) if messages else UNREADABLE_CARD
    return quotation("Card", text) if text != UNREADABLE_CARD else ""


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
        data, reason = b"", "there are too many"
        if number <= MOST_IMAGES:
            data, reason = await _download(services, message_id, key, room, deadline)
        if kind := media_type(data):
            images.append(Image(data, kind))
        else:
            remarks.append(remark(f"image {number} of {len(pictures)} not shown: {reason}"))
    return tuple(images), remarks


async def _download(
    services: Services, message_id: str, key: str, room: int, deadline: float
) -> tuple[bytes, str]:
    """The picture, and why it cannot be shown if it cannot."""
    try:
        async with asyncio.timeout_at(deadline):
            data = await services.feishu.download_resource(message_id, key, "image", room)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("incoming.image_unavailable", error=type(exc).__name__)
        too_large = f"all images together may have {MOST_BYTES // 1_000_000} MB, and it has more"
        return b"", too_large if isinstance(exc, ResourceTooLarge) else "it could not be loaded"
    return data, _why_not_shown(data)


def _describe_attachment(attachment: Attachment) -> str:
    name = f' "{short_name(attachment.name)}"' if attachment.name else ""
    size = f", {attachment.size} bytes" if attachment.size is not None else ""
    return remark(f"{attachment.kind}{name}{size}: you know its name only, not what is in it")


def _brand(data: bytes) -> str:
    """The format of a picture in ISO's container: the main brand, or what it is compatible with.
    Where nothing more is said than that it is one, it is what phones make."""
    end = min(int.from_bytes(data[:4]), 256)
    brands = [data[8:12], *(data[at : at + 4] for at in range(16, end, 4))]
    brand_name = next((_BRANDS[one] for one in brands if one in _BRANDS), "")
    return brand_name or ("HEIC" if any(one in _SHARED_BRANDS for one in brands) else "")


def _why_not_shown(data: bytes) -> str:
    if not data:
        return "it is empty"
    format_name = next((name for start, name in _OTHERS.items() if data.startswith(start)), "")
    brand = _brand(data) if data[4:8] == b"ftyp" else ""
    svg = "SVG" if b"<svg" in data[:1024].lower() else ""
    name = format_name or brand or svg
    kind = f"it is a picture in the format {name}" if name else "its format is unknown"
    return f"{kind}; only PNG, JPEG, GIF and WebP can be read, so ask for one of these"


def media_type(data: bytes) -> str:
    """The type that the first bytes show; "" if models do not take such a picture."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS.items() if data.startswith(start)), "")
