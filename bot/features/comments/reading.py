"""What a comment is about: its thread and its document, read as the app, else as the commenter."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from bot.agents.prompts.prompt import quotation, remark, short_name
from bot.documents.document import (
    DocumentLink,
    LinkKind,
    ReadDocument,
    Section,
    UnreadDocument,
    outline,
)
from bot.documents.reading import CommentedDocument, DocumentReader, PersonDocuments
from bot.features.documents import token_of
from bot.feishu.errors import FeishuError
from bot.feishu.other_events import (
    CommentNotice,
    CommentPlace,
    CommentReply,
    CommentThread,
    reply_text,
)
from bot.services import Services
from memory.scope import FeishuPerson
from memory.text import labelled_text, speaker_label

log = structlog.get_logger()

_HOST = "www.feishu.cn"  # any of Feishu's: only the token counts
_KINDS: Mapping[str, LinkKind] = {"docx": "docx", "sheet": "sheet", "bitable": "bitable"}
LONGEST = 12_000  # characters of the document that stand in the prompt; tools read the rest
_MOST_LINES = 60
_LONGEST_LINE = 1000


class ThreadNotRead(Exception):
    """Neither the app nor the commenter can read the thread; `reason` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def thread_of(services: Services, notice: CommentNotice) -> CommentThread:
    """The thread. Raises `ThreadNotRead`, or a failure that is worth another attempt."""
    try:
        comment_thread = await services.feishu.comments.thread(notice.place)
    except FeishuError as error:
        if error.action.may_pass and not error.scopes:
            raise
        token = await _token(services, notice)
        if not token:
            raise ThreadNotRead(f"feishu {error.code}") from error
        comment_thread = await _as_commenter(services, notice, token)
    if comment_thread is None:
        raise ThreadNotRead("deleted")
    return comment_thread


async def _as_commenter(
    services: Services, notice: CommentNotice, token: str
) -> CommentThread | None:
    try:
        return await services.feishu.comments.thread(notice.place, token)
    except FeishuError as error:
        if error.action.may_pass:
            raise
        raise ThreadNotRead(f"feishu {error.code}") from error


async def _token(services: Services, notice: CommentNotice) -> str | None:
    """The commenter's own, where they are connected; a bot is not."""
    if notice.by_bot:
        return None
    person = FeishuPerson(notice.tenant_key, notice.author_open_id)
    return await token_of(services, person)()


def document_of(services: Services, notice: CommentNotice) -> CommentedDocument:
    """The document, as the app reads it, else as the commenter does."""
    reader = DocumentReader(services.feishu.documents, zone=services.settings.zone)
    readers = [PersonDocuments(reader, _as_app)]
    if services.access and not notice.by_bot:
        person = FeishuPerson(notice.tenant_key, notice.author_open_id)
        renewed_token = token_of(services, person, is_retry=True)
        readers.append(PersonDocuments(reader, token_of(services, person), renewed_token))
    return CommentedDocument(notice.place.file_token, *readers)


async def _as_app() -> str:
    return ""


def link_of(place: CommentPlace) -> str:
    """A link to the document, "" for kinds that are not read."""
    kind = _KINDS.get(place.file_type)
    return DocumentLink(kind, place.file_token, _HOST).url if kind else ""


async def material_of(
    document: CommentedDocument, place: CommentPlace, thread: CommentThread
) -> str:
    """The passage and the document, as quotations before the question. Never raises."""
    quotations = [quotation("The passage that the comment is about", thread.quote)]
    parts = quotations if thread.quote else [remark("The comment is about the whole document")]
    link = link_of(place)
    document_read = await document.read(link) if link else UnreadDocument("kind")
    if isinstance(document_read, UnreadDocument):
        log.info("comments.document_unread", reason=document_read.reason)
        unread = (
            "The document itself could not be read: only the passage and the comments are known"
        )
        return "\n\n".join([*parts, remark(unread)])
    text = _document_excerpt(document_read, thread.quote)
    about = f'Text of the document "{short_name(document_read.title)}"'
    part = (
        ""
        if document_read.size <= LONGEST
        else "; in part, read_document gives its sections by number"
    )
    return "\n\n".join([*parts, quotation(f"{about}{part}", text, longest=LONGEST), *_link(link)])


def _link(link: str) -> list[str]:
    return [remark(f"Its link for read_document: {link}")]


def _document_excerpt(document: ReadDocument, quote: str) -> str:
    """All of a short document; of a long one its outline and the sections about the passage."""
    if document.size <= LONGEST:
        return "\n\n".join(map(_section, document.sections))
    passage = " ".join(quote.split())
    near = [one for one in document.sections if passage and passage in " ".join(one.text.split())]
    return "\n\n".join([outline(document), *map(_section, near[:2] or document.sections[:1])])


def _section(section: Section) -> str:
    title = f"{'#' * max(section.level, 1)} {section.title}\n" if section.title else ""
    return f"{title}{section.text}".strip()


def lines_of(
    thread: CommentThread, asking_reply: CommentReply, names: Mapping[str, str], bot_open_id: str
) -> list[str]:
    """What was said in the thread before the question, the newest lines, with their authors."""
    before = thread.replies[: thread.replies.index(asking_reply)]
    return [
        labelled_text(
            "You" if one.author_open_id == bot_open_id else _label(names, one.author_open_id),
            reply_text(one, names)[:_LONGEST_LINE],
        )
        for one in before[-_MOST_LINES:]
    ]


def _label(names: Mapping[str, str], open_id: str) -> str:
    return speaker_label(names.get(open_id, "someone"))
