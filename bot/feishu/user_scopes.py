"""What people are asked to let the bot do as themselves. Pure.

Source: “required scopes” on Feishu's pages of the APIs that read documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

OFFLINE = "offline_access"  # without it a grant ends after two hours

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
}
DOCUMENTS: tuple[str, ...] = (OFFLINE, *(one for names in PURPOSES.values() for one in names))


def purposes_of(scopes: Collection[str]) -> tuple[str, ...]:
    """The purposes for which everything is granted."""
    return tuple(one for one, names in PURPOSES.items() if all(name in scopes for name in names))
