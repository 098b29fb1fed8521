"""Decides whether everybody in a group can open a document and sees the same in it: only then may
the group be told of it.

It is asked as the person who asks, for one turn; what Feishu does not say counts as no. A Base
with advanced permissions shows each reader other records, and a docx shows parts of other
documents only to those who can open these. Unknown blocks count as such. Source: Feishu, docx-v1
“Block data structure”, bitable-v1 get app, sheets-v2 metainfo."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import structlog

from bot.documents.document import DocumentLink, Reason, unread_document
from bot.feishu.documents import DocumentCalls
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.fields import as_dict, as_text
from memory.scope import FeishuPerson

log = structlog.get_logger()
FRESH_S = 60.0
_MOST_GROUPS = 3  # other groups whose members are looked at
_MOST_SHOWN = 10  # other documents of which one shows parts
_PASSES = frozenset({Action.RETRY, Action.REFRESH_TOKEN, Action.ALERT})
Visibility = Literal["open", "closed", "unknown"]
AccessToken = Callable[[], Awaitable[str | None]]
Members = Callable[[], Awaitable[Collection[FeishuPerson]]]
MembersOf = Callable[[str], Awaitable[Collection[FeishuPerson]]]

_TO_EVERYBODY = frozenset({"anyone_readable", "anyone_editable"})
_TO_THE_TENANT = frozenset({"tenant_readable", "tenant_editable"})
_MAY_NOT_SEE = frozenset({1063002, 1063004})
_MISSING_REASONS: frozenset[Reason] = frozenset({"not_found", "deleted", "forbidden"})
_Answer = TypeVar("_Answer")

# Text, headings, lists, code, quotes, todos, callouts, dividers, files, columns, pictures, tables,
# boards, agendas, links, and the synced block where it was made.
_OF_THE_DOCUMENT = frozenset(
    (*range(1, 16), 17, 19, *range(21, 28), *range(31, 35), *range(43, 50))
)
MOST_BLOCKS = 20_000


@dataclass(frozen=True, slots=True)
class AskedGroup:
    """A group, or a p2p chat with its one person, and who asks there. `members` gives who reads it
    now, `members_of` who is in another group that the bot is in; both raise FeishuFailure."""

    chat_id: str
    tenant_key: str
    asker: FeishuPerson
    members: Members
    members_of: MembersOf | None = None


class GroupAudience:
    """What it found open holds for a minute."""

    def __init__(
        self,
        group: AskedGroup,
        calls: DocumentCalls,
        access_token: AccessToken,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._calls = calls
        self._access_token = access_token
        self._clock = clock
        self._proven = {group.asker.open_id}  # only counts where they can open it now
        self._open: dict[DocumentLink, float] = {}  # and when that was found

    async def is_open(self, link: DocumentLink) -> bool:
        """Whether everybody there can open it, at most a minute ago. What nobody says is closed."""
        found_at = self._open.get(link)
        if found_at is not None and self._clock() - found_at < FRESH_S:
            return True
        asked_at = self._clock()
        if await self.look(link) != "open":
            return False
        self._open[link] = asked_at
        return True

    def open_ago_s(self, link: DocumentLink) -> float | None:
        """How long ago everybody could open it, in seconds; None: that was not found."""
        found_at = self._open.get(link)
        return None if found_at is None else self._clock() - found_at

    async def all_open(self) -> bool:
        """Whether all that was open still is."""
        return all([await self.is_open(link) for link in list(self._open)])

    async def look(self, link: DocumentLink) -> Visibility:
        """What Feishu says now. Raises `StoreError`.

        A document that everybody can open may still show each of them something else. Then it is
        closed: what the asker sees in it is theirs alone. So it is if it shows parts of another
        document that is closed.
        """
        try:
            token = await self._access_token()
            members = await self._group.members()
        except FeishuFailure as failure:
            log.info("documents.audience_unknown", error=type(failure).__name__)
            return "unknown"
        if token is None:
            return "unknown"
        try:
            return await self._look_at_all(Document(link.kind, link.token), token, members)
        except ShowsEachSomethingElse:
            return "closed"
        except FeishuFailure as failure:
            log.info("documents.content_unknown", error=type(failure).__name__)
            return "unknown"

    async def _look_at_all(
        self, document: Document, token: str, members: Collection[FeishuPerson]
    ) -> Visibility:
        """What Feishu says of the document and of all that it shows parts of."""
        waiting, seen_documents = [document], {document}
        while waiting:
            document = waiting.pop()
            sight = await self._look_at_sharing(document, token, members)
            if sight != "open":
                return sight
            parts = await documents_shown_in(self._calls, document, token) - seen_documents
            waiting += parts
            seen_documents |= parts
            if len(seen_documents) > _MOST_SHOWN:
                return "closed"
        return "open"

    async def _look_at_sharing(
        self, document: Document, token: str, members: Collection[FeishuPerson]
    ) -> Visibility:
        sharing = await sharing_of(self._calls, document.token, document.kind, token)
        chat_id, listeners = self._group.chat_id, list(map(self._listener, members))
        if everybody_can_open(sharing, chat_id, listeners, self._proven):
            return "open"
        is_sure = sharing.is_sure
        for group in other_groups(sharing, chat_id)[:_MOST_GROUPS]:
            people = await self._people_of(group)
            is_sure = is_sure and people is not None
            sharing = with_members(sharing, people or ())
            if everybody_can_open(sharing, chat_id, listeners, self._proven):
                return "open"
        return "closed" if is_sure else "unknown"

    async def _people_of(self, group: str) -> list[str] | None:
        """The open ids of who is in another group, nobody where the bot is not in it. None: Feishu
        does not say now."""
        if self._group.members_of is None:
            return []
        try:
            members = await self._group.members_of(group)
        except FeishuFailure as failure:
            log.info("documents.group_unknown", error=type(failure).__name__)
            passes = not isinstance(failure, FeishuError) or failure.action in _PASSES
            return None if passes else []
        return [one.open_id for one in members if one.tenant_key == self._group.tenant_key]

    def _listener(self, member: FeishuPerson) -> GroupListener:
        return GroupListener(member.open_id, member.tenant_key == self._group.tenant_key)


@dataclass(frozen=True, slots=True)
class GroupListener:
    """A person in the group, and whether they are of the tenant that the documents are of."""

    open_id: str
    is_of_tenant: bool


@dataclass(frozen=True, slots=True)
class Sharing:
    """With whom a document is shared, as far as Feishu told the asker. `is_open_to_asker`: they can
    open it themselves; `link` and `collaborators` are empty where they may not look at them.
    `is_sure`: Feishu answered all of it."""

    is_open_to_asker: bool = False
    link: str = ""
    collaborators: frozenset[tuple[str, str]] = frozenset()
    is_sure: bool = field(default=True, compare=False)


def everybody_can_open(
    sharing: Sharing, chat_id: str, listeners: Collection[GroupListener], proven: Collection[str]
) -> bool:
    """Whether each of `listeners` can open the document. Nobody known to be there: no.

    `proven`: open ids of those who opened it just now with their own identity, the asker among
    them. Departments and members of a wiki prove nothing: who belongs to them is not known. Of
    another group see `with_members`.
    """
    if not sharing.is_open_to_asker or not listeners:
        return False
    return all(one.open_id in proven or _can_open(sharing, chat_id, one) for one in listeners)


def other_groups(sharing: Sharing, chat_id: str) -> list[str]:
    """The other groups that it is shared with."""
    chat_ids = (member for kind, member in sharing.collaborators if kind == "openchat")
    return sorted(one for one in chat_ids if one != chat_id)


def with_members(sharing: Sharing, people: Collection[str]) -> Sharing:
    """The same with the people of a group that it is shared with, who can open it as if by name."""
    members = frozenset(("openid", one) for one in people)
    return replace(sharing, collaborators=sharing.collaborators | members)


def _can_open(sharing: Sharing, chat_id: str, listener: GroupListener) -> bool:
    """Of another tenant one can open what is open to all, whatever else it is shared with: sharing
    with outsiders may be turned off."""
    if sharing.link in _TO_EVERYBODY:
        return True
    return listener.is_of_tenant and (
        sharing.link in _TO_THE_TENANT
        or ("openchat", chat_id) in sharing.collaborators
        or ("openid", listener.open_id) in sharing.collaborators
    )


async def sharing_of(calls: DocumentCalls, token: str, kind: str, as_user: str) -> Sharing:
    """With whom the document is shared now, asked as the person whose access token it is. `kind` is
    docx, sheet or bitable. Never raises FeishuFailure, and remembers nothing."""
    failures: list[FeishuFailure] = []
    can_view = await _answer_or(calls.may_view(token, kind, as_user), False, failures)
    link, members = "", list[tuple[str, str]]()
    if can_view:
        link = await _answer_or(calls.link_sharing(token, kind, as_user), "", failures)
        members = await _answer_or(calls.collaborators(token, kind, as_user), [], failures)
    return Sharing(can_view, link, frozenset(members), is_sure=all(map(_says_no, failures)))


async def _answer_or(
    answer: Awaitable[_Answer], otherwise: _Answer, failures: list[FeishuFailure]
) -> _Answer:
    try:
        return await answer
    except FeishuFailure as failure:
        failures.append(failure)
        log.info("documents.sharing_untold", reason=unread_document(failure).reason)
        return otherwise


def _says_no(failure: FeishuFailure) -> bool:
    """Whether it is an answer: the person may not see that, or there is no such document."""
    if isinstance(failure, FeishuError) and failure.code in _MAY_NOT_SEE:
        return True
    return unread_document(failure).reason in _MISSING_REASONS


@dataclass(frozen=True, slots=True)
class Document:
    """A document; `kind` as Feishu names it."""

    kind: str
    token: str


class ShowsEachSomethingElse(Exception):
    """The document may show its readers different contents."""


async def documents_shown_in(
    calls: DocumentCalls, document: Document, as_user: str
) -> frozenset[Document]:
    """Returns the other documents of which this one shows parts. Raises `ShowsEachSomethingElse`
    and FeishuFailure."""
    kind, token = document.kind, document.token
    if kind == "wiki":
        node = await calls.wiki_node(token, as_user)
        target = Document(node.kind, node.token)
        return await documents_shown_in(calls, target, as_user) | (
            frozenset() if node.is_origin else {target}
        )
    if kind == "docx":
        return await _embedded_documents(calls, token, as_user) - {document}
    if kind == "bitable":
        differs = await calls.has_advanced_permissions(token, as_user)
    else:
        differs = kind != "sheet" or await calls.has_protection(token, as_user)
    if differs:
        raise ShowsEachSomethingElse
    return frozenset()


async def _embedded_documents(
    calls: DocumentCalls, token: str, as_user: str
) -> frozenset[Document]:
    documents, count = set[Document](), 0
    async for block in calls.docx_blocks(token, as_user):
        count += 1
        if count > MOST_BLOCKS:
            raise ShowsEachSomethingElse
        if block.get("block_type") not in _OF_THE_DOCUMENT:
            documents.add(_shown_by(block))
    return frozenset(documents)


def _shown_by(block: Mapping[str, Any]) -> Document:
    """The tokens of embedded tables name the table after the document: `base_table`."""
    match block.get("block_type"):
        case 18:
            document = Document("bitable", _before_table(block, "bitable"))
        case 30:
            document = Document("sheet", _before_table(block, "sheet"))
        case 50:
            source = as_dict(block.get("reference_synced"))
            document = Document("docx", as_text(source.get("source_document_id")))
        case _:
            raise ShowsEachSomethingElse
    if not document.token:
        raise ShowsEachSomethingElse
    return document


def _before_table(block: Mapping[str, Any], name: str) -> str:
    return as_text(as_dict(block.get(name)).get("token")).partition("_")[0]
