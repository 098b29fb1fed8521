"""What people are asked to let the bot do as themselves. Pure.

Source: “required scopes” on Feishu's pages of the APIs that read documents, and of calendar-v4 and
task-v2. What people grant adds up (Feishu, “Obtain OAuth code”), so each purpose is asked for when
it is first needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

OFFLINE = "offline_access"  # without it a grant ends after two hours

READ_CALENDAR, WRITE_CALENDAR = "read-calendar", "write-calendar"
READ_TASKS, WRITE_TASKS = "read-tasks", "write-tasks"

# By purpose, in the order in which they are read.
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "read-documents": (
        "docs:document.content:read",
        "docx:document:readonly",
        "wiki:node:read",
        "sheets:spreadsheet:readonly",
        "bitable:app:readonly",
    ),
    "read-comments": ("docs:document.comment:read",),
    "see-readers": (
        "docs:permission.setting:read",
        "docs:permission.member:retrieve",
        "docs:permission.member:auth",
    ),
    "search-documents": ("search:docs:read",),
    READ_CALENDAR: ("calendar:calendar:readonly",),
    WRITE_CALENDAR: (
        "calendar:calendar.event:create",
        "calendar:calendar.event:update",
        "calendar:calendar.event:delete",
    ),
    READ_TASKS: ("task:task:read",),
    WRITE_TASKS: ("task:task:write",),
}
_DOCUMENTS = ("read-documents", "read-comments", "see-readers", "search-documents")
_INCLUDED = {"task:task:write": "task:task:read"}  # one scope, and what it lets one do besides
WRITING = frozenset({WRITE_CALENDAR, WRITE_TASKS})


def scopes_for(purposes: Collection[str]) -> tuple[str, ...]:
    """What is asked for, so that a grant for these purposes lasts."""
    return (OFFLINE, *(one for purpose in purposes for one in PURPOSES[purpose]))


DOCUMENTS: tuple[str, ...] = scopes_for(_DOCUMENTS)
EVERYTHING: tuple[str, ...] = scopes_for(PURPOSES)


def purposes_of(scopes: Collection[str]) -> tuple[str, ...]:
    """The purposes for which everything is granted."""
    return tuple(one for one in PURPOSES if not missing_scopes((one,), scopes))


def missing_scopes(purposes: Collection[str], granted_scopes: Collection[str]) -> tuple[str, ...]:
    """What these purposes need and is not granted."""
    has = {*granted_scopes, *(_INCLUDED[one] for one in granted_scopes if one in _INCLUDED)}
    needed_scopes = (one for purpose in purposes for one in PURPOSES[purpose])
    return tuple(one for one in needed_scopes if one not in has)


@dataclass(frozen=True, slots=True)
class AccessNeeds:
    """What an answer could not use of the asker's own access. `withheld`: a document that not
    everybody who reads the answer can open, and that the asker may be told of alone. `unconnected`:
    a document of somebody whose account is not connected. `scopes`: needed, and not granted."""

    withheld: bool = False
    unconnected: bool = False
    scopes: tuple[str, ...] = ()


NO_NEEDS = AccessNeeds()
