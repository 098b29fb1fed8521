"""Documents of the simulated tenant: who may do what with them, and how their contents read.

Sources: open.feishu.cn, drive-v2 permission-public, drive-v1 permission-member, docs-v1 content.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sandbox.world.entities import SandboxDocument, new_id
from sandbox.world.state import World

DOCX, SHEET, BASE, WIKI = "docx", "sheet", "bitable", "wiki"
PATHS = {DOCX: "docx", SHEET: "sheets", BASE: "base"}
LINKS = (
    "closed",
    "tenant_readable",
    "tenant_editable",
    "partner_tenant_readable",
    "partner_tenant_editable",
    "anyone_readable",
    "anyone_editable",
)
PERMS = ("view", "edit", "full_access")
MEMBER_TYPES = ("openid", "openchat", "opendepartmentid", "wikispaceid", "appid")
MANAGERS = {
    "collaborator_can_view": "view",
    "collaborator_can_edit": "edit",
    "collaborator_full_access": "full_access",
}
_OF_TYPE = {
    "openid": "user",
    "openchat": "chat",
    "opendepartmentid": "department",
    "wikispaceid": "wiki_space_member",
    "appid": "app",
}
ACTIONS = {
    **dict.fromkeys(("view", "comment", "export", "copy", "print"), "view"),
    "edit": "edit",
    "manage_public": "full_access",
}
BLOCK_TYPES = {
    "heading": 3, "text": 2, "bullet": 12, "ordered": 13, "quote": 15, "code": 14, "table": 31,
    "synced": 49,
}  # fmt: skip
# Blocks that show something that stands elsewhere: their number, name, and field of its token.
BLOCKS_OF_OTHERS = {
    "base": (18, "bitable", "token"),
    "sheet": (30, "sheet", "token"),
    "task": (35, "task", ""),
    "reference": (50, "reference_synced", "source_document_id"),
    "unknown": (999, "undefined", ""),
}
_ESCAPED = re.compile(r"[\\`*_\[\]()]|(?<=\w)\.(?=\w)")


class Library:
    """The documents. Not thread-safe; the world's lock guards it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self, token: str, kind: str) -> SandboxDocument | None:
        """The document of that kind, deleted ones too; `wiki` takes the token of a node."""
        if kind == WIKI:
            every = self._world.documents.values()
            return next((one for one in every if token and one.node_token == token), None)
        document = self._world.documents.get(token)
        return document if document is not None and document.kind == kind else None

    def put(self, document: SandboxDocument, **changes: object) -> SandboxDocument:
        """Stores it, changed now."""
        now = self._world.now_ms()
        changed = replace(document, update_ms=now, **changes)  # type: ignore[arg-type]
        self._world.put(changed)
        return changed

    def may(self, document: SandboxDocument, open_id: str | None, perm: str = "view") -> bool:
        """Whether somebody may view, edit or manage it; None is the app itself."""
        held = self._perm(document, open_id)
        return held in PERMS and PERMS.index(held) >= PERMS.index(perm)

    def may_look_at_permissions(self, document: SandboxDocument, open_id: str | None) -> bool:
        """Whether somebody may see with whom it is shared, and how."""
        return self.may(document, open_id, MANAGERS[document.manage])

    def readers(self, document: SandboxDocument) -> list[str]:
        """The open ids of all who can view it."""
        people = [one for one in self._world.people.values() if one.kind == "user"]
        return [one.open_id for one in people if self.may(document, one.open_id)]

    def url(self, document: SandboxDocument) -> str:
        """Its link, in the wiki where it hangs there."""
        host = self._world.config.documents_host
        if document.node_token:
            return f"https://{host}/wiki/{document.node_token}"
        return f"https://{host}/{PATHS[document.kind]}/{document.token}"

    def search(self, open_id: str, query: str) -> list[SandboxDocument]:
        """What somebody can view and that has every word of `query`, the newest first."""
        words = query.lower().split()
        found = [
            one
            for one in self._world.documents.values()
            if not one.deleted
            and self.may(one, open_id)
            and all(word in f"{one.title}\n{plain_text(one)}".lower() for word in words)
        ]
        return sorted(found, key=lambda one: -one.update_ms)

    def _perm(self, document: SandboxDocument, open_id: str | None) -> str:
        """The highest of what somebody has: as owner, as collaborator, by the link; or ""."""
        if open_id == document.owner:
            return "full_access"
        held = [one["perm"] for one in document.members if self._stands_for(one, open_id)]
        by_link = "edit" if document.link.endswith("_editable") else "view"
        if document.link.startswith("anyone_") or self._in_tenant(document, open_id):
            held.append(by_link)
        return max(held, key=PERMS.index, default="")

    def _in_tenant(self, document: SandboxDocument, open_id: str | None) -> bool:
        person = self._world.people.get(open_id or "")
        if person is None or not document.link.startswith("tenant_"):
            return False
        return self._world.tenant_of(person) == self._world.config.tenant_key

    def _stands_for(self, member: dict[str, Any], open_id: str | None) -> bool:
        kind, member_id = member["member_type"], member["member_id"]
        if open_id is None:
            return bool(kind == "appid" and member_id == self._world.config.app_id)
        if kind == "openid":
            return bool(member_id == open_id)
        if kind == "openchat":
            chat = self._world.chats.get(member_id)
            return chat is not None and not chat.dissolved and open_id in chat.members
        return open_id in member.get("people", ())


def new_token(prefix: str = "") -> str:
    """A token of 27 letters, as Feishu's."""
    return prefix + new_id("", 28)[: 27 - len(prefix)]


def member_shape(member: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """A collaborator as the list of them shows it."""
    shape = {name: member[name] for name in ("member_type", "member_id", "perm")}
    shape |= {"perm_type": "container", "type": _OF_TYPE[member["member_type"]]}
    named = "name" in member and not {"name", "*"}.isdisjoint(fields)
    return shape | ({"name": member["name"]} if named else {})


def markdown(document: SandboxDocument) -> str:
    """The Markdown of a docx, as `docs/v1/content` exports it: tables are HTML."""
    return "\n\n".join(_block_markdown(one) for one in document.body["blocks"]) + "\n"


def plain_text(document: SandboxDocument) -> str:
    """The words alone, line by line."""
    if document.kind == DOCX:
        lines = [document.title, *(_block_text(one) for one in document.body["blocks"])]
    elif document.kind == SHEET:
        rows = [row for sheet in document.body["sheets"] for row in sheet["rows"]]
        lines = [" ".join(str(cell) for cell in row if cell is not None) for row in rows]
    else:
        records = [record for table in document.body["tables"] for record in table["records"]]
        lines = [" ".join(str(value) for value in one.values()) for one in records]
    return "\n".join(lines) + "\n"


def _block_markdown(block: dict[str, Any]) -> str:
    kind = block["kind"]
    if kind in ("markdown", "synced", *BLOCKS_OF_OTHERS):
        return str(block["text"])
    if kind == "table":
        return _table(block["rows"])
    if kind == "code":
        return f"```{block.get('language', '')}\n{block['text']}\n```"
    text = _escaped(block["text"])
    if kind == "heading":
        return f"{'#' * int(block.get('level', 1))} {text}"
    return {"bullet": "- ", "ordered": "1. ", "quote": "> ", "text": ""}[kind] + text


def _block_text(block: dict[str, Any]) -> str:
    if block["kind"] == "table":
        return "\n".join(cell for row in block["rows"] for cell in row)
    return str(block["text"])


def _table(rows: list[list[str]]) -> str:
    body = "\n".join(
        "<tr>\n" + "\n".join(f"<td>\n\n{_escaped(cell)}\n\n</td>" for cell in row) + "\n</tr>"
        for row in rows
    )
    return f"<table><tbody>\n{body}\n</tbody></table>"


def _escaped(text: object) -> str:
    return _ESCAPED.sub(lambda found: f"\\{found[0]}", str(text))
