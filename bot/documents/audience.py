"""Whether everybody in a group can open a document: only then may the group be told of it.

A rule (pure), and the question as the person who asks. What Feishu does not say counts as no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog

from bot.documents.refusals import Reason, unread
from bot.feishu.documents import DocumentCalls
from bot.feishu.errors import FeishuError, FeishuFailure

_TO_EVERYBODY = frozenset({"anyone_readable", "anyone_editable"})
_TO_THE_TENANT = frozenset({"tenant_readable", "tenant_editable"})

_MAY_NOT_SEE = frozenset({1063002, 1063004})
_GONE: frozenset[Reason] = frozenset({"not_found", "deleted", "forbidden"})

_Told = TypeVar("_Told")

_log = structlog.get_logger(__name__)


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
    can_view = await _told(calls.may_view(token, kind, as_user), False, failures)
    link, members = "", list[tuple[str, str]]()
    if can_view:
        link = await _told(calls.link_sharing(token, kind, as_user), "", failures)
        members = await _told(calls.collaborators(token, kind, as_user), [], failures)
    return Sharing(can_view, link, frozenset(members), is_sure=all(map(_says_no, failures)))


async def _told(answer: Awaitable[_Told], otherwise: _Told, failures: list[FeishuFailure]) -> _Told:
    try:
        return await answer
    except FeishuFailure as failure:
        failures.append(failure)
        _log.info("documents.sharing_untold", reason=unread(failure).reason)
        return otherwise


def _says_no(failure: FeishuFailure) -> bool:
    """Whether it is an answer: the person may not see that, or there is no such document."""
    if isinstance(failure, FeishuError) and failure.code in _MAY_NOT_SEE:
        return True
    return unread(failure).reason in _GONE
