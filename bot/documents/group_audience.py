"""Whether everybody in a group can open a document: asked as the person who asks, for one turn."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal

import structlog

from bot.documents.audience import (
    GroupListener,
    everybody_can_open,
    other_groups,
    sharing_of,
    with_members,
)
from bot.documents.differences import (
    Document,
    ShowsEachSomethingElse,
    documents_shown_in,
)
from bot.documents.links import DocumentLink
from bot.feishu.documents import DocumentCalls
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from memory.identity import FeishuPerson

log = structlog.get_logger()

FRESH_S = 60.0
_MOST_GROUPS = 3  # other groups whose members are looked at
_MOST_SHOWN = 10  # other documents of which one shows parts
_PASSES = frozenset({Action.RETRY, Action.REFRESH_TOKEN, Action.ALERT})

Seen = Literal["open", "closed", "unknown"]

AccessToken = Callable[[], Awaitable[str | None]]
Members = Callable[[], Awaitable[Collection[FeishuPerson]]]
MembersOf = Callable[[str], Awaitable[Collection[FeishuPerson]]]


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

    async def look(self, link: DocumentLink) -> Seen:
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
    ) -> Seen:
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
    ) -> Seen:
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
