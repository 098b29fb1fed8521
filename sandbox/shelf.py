"""The part of the control interface for documents: writing, sharing and deleting them, comments.

People do this in Feishu itself; no app hears of it, but of comments that concern it.
"""

from typing import Any

from flask import Response

from sandbox.control_body import control_body, text_of
from sandbox.http import current_platform, json_response
from sandbox.world.actors import ControlRefused
from sandbox.world.comments import Comment, elements_of
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import (
    BASE,
    BLOCK_TYPES,
    BLOCKS_OF_OTHERS,
    DOCX,
    LINKS,
    MANAGERS,
    MEMBER_TYPES,
    PERMS,
    SHEET,
    new_token,
    plain_text,
)

_BLOCKS = (*BLOCK_TYPES, *BLOCKS_OF_OTHERS, "markdown")


def documents() -> Response:
    """`{items: [{token, kind, title, url, owner, link, members, readers, …}]}`"""
    platform = current_platform()
    with platform.world.lock:
        items = [_view(one) for one in platform.world.documents.values()]
    return json_response({"items": items})


def add_document() -> Response:
    """`{as, kind: docx | sheet | bitable, title, blocks | markdown | sheets | tables, wiki, link,
    members, manage}`; `wiki`: true hangs it there.

    Blocks are `{kind, text}`, with `level` of a heading, `rows` of a table, and `source`, a token,
    of what shows another document; sheets `{title, rows, protected}`; tables `{name, fields:
    [{name, type}], records: [{name: value}]}`.
    `is_advanced`: the Base has advanced permissions; then a record with `readers`, a list of open
    ids, is shown to these alone.
    """
    platform, body = current_platform(), control_body()
    kind, wiki = text_of(body, "kind", DOCX), bool(body.get("wiki"))
    with platform.world.lock:
        owner, now = platform.actors.person(text_of(body, "as")), platform.world.now_ms()
        document = SandboxDocument(
            new_token(),
            kind,
            text_of(body, "title"),
            owner.open_id,
            _contents(kind, body),
            node_token=new_token("wik") if wiki else "",
            space_id="7000000000000000001" if wiki else "",
            create_ms=now,
        )
        return json_response(_view(platform.library.put(document, **_sharing(body))))


def change_document() -> Response:
    """`{token, link, members, manage, deleted, title, blocks | markdown | sheets | tables}`: any of
    them; `members` replaces all collaborators."""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        document = _wanted(body)
        changes = _sharing(body)
        if "title" in body:
            changes["title"] = text_of(body, "title")
        if "deleted" in body:
            changes["deleted"] = bool(body["deleted"])
        if {"blocks", "markdown", "sheets", "tables"} & body.keys():
            changes["body"] = _contents(document.kind, body)
            changes["revision"] = document.revision + 1
        return json_response(_view(platform.library.put(document, **changes)))


def comment() -> Response:
    """`{as, token, text, quote, solved}`: somebody comments on a passage, or on all of it; with
    `comment_id` they reply. `@Name` of the tenant's people and bots in `text` mentions them."""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        document, world = _wanted(body), platform.world
        people = [(one.name, one.open_id) for one in world.people.values()]
        elements = elements_of(text_of(body, "text"), sorted(people, key=lambda one: -len(one[0])))
        author = platform.actors.person(text_of(body, "as")).open_id
        if comment_id := text_of(body, "comment_id", ""):
            found = _thread(document, comment_id)
            said = platform.comments.reply(document, found, author, elements)
            ids = {"comment_id": comment_id, "reply_id": said["reply_id"]}
        else:
            quote, solved = text_of(body, "quote", ""), bool(body.get("solved"))
            made = platform.comments.add(document, author, elements, quote=quote, solved=solved)
            ids = {"comment_id": made["comment_id"], "reply_id": made["comment_id"]}
        return json_response({**_view(world.documents[document.token]), **ids})


def solve() -> Response:
    """`{token, comment_id, solved}`"""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        document = _wanted(body)
        found = _thread(document, text_of(body, "comment_id"))
        platform.comments.solve(document, found, solved=bool(body.get("solved", True)))
        return json_response(_view(platform.world.documents[document.token]))


def _wanted(body: dict[str, Any]) -> SandboxDocument:
    document = current_platform().world.documents.get(text_of(body, "token"))
    if document is None:
        raise ControlRefused("there is no such document")
    return document


def _thread(document: SandboxDocument, comment_id: str) -> Comment:
    found = (one for one in document.comments if one["comment_id"] == comment_id)
    if (comment := next(found, None)) is None:
        raise ControlRefused("there is no such comment")
    return comment


def _sharing(body: dict[str, Any]) -> dict[str, Any]:
    """The named ones of `link`, `manage` and `members`. Raises ControlRefused."""
    changes: dict[str, Any] = {}
    for name, known in (("link", LINKS), ("manage", tuple(MANAGERS))):
        if name in body:
            if body[name] not in known:
                raise ControlRefused(f"{name!r} must be one of {known}")
            changes[name] = body[name]
    if "members" in body:
        changes["members"] = tuple(_member(one) for one in body["members"])
    return changes


def _member(member: dict[str, Any]) -> dict[str, Any]:
    kind, perm = member.get("member_type"), member.get("perm", "view")
    if kind not in MEMBER_TYPES or perm not in PERMS:
        raise ControlRefused(f"a collaborator has a type of {MEMBER_TYPES}, and one of {PERMS}")
    made = {"member_type": kind, "member_id": text_of(member, "member_id"), "perm": perm}
    return made | {name: member[name] for name in ("people", "name") if name in member}


def _contents(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    if kind == DOCX:
        blocks = body.get("blocks", [{"kind": "markdown", "text": text_of(body, "markdown", "")}])
        if any(one.get("kind") not in _BLOCKS for one in blocks):
            raise ControlRefused(f"blocks are of the kinds {_BLOCKS}")
        return {"blocks": blocks}
    if kind == SHEET:
        sheets = body.get("sheets", [])
        return {"sheets": [{"sheet_id": f"sh{at:04}", **one} for at, one in enumerate(sheets)]}
    if kind == BASE:
        tables = enumerate(body.get("tables", []))
        return {
            "tables": [{"table_id": f"tbl{at:013}", **one} for at, one in tables],
            "is_advanced": bool(body.get("is_advanced")),
        }
    raise ControlRefused(f"'kind' must be one of {(DOCX, SHEET, BASE)}")


def _view(document: SandboxDocument) -> dict[str, Any]:
    platform = current_platform()
    people, chats = platform.world.people, platform.world.chats
    readers = platform.library.readers(document)
    names = [
        chats[one["member_id"]].name
        for one in document.members
        if one["member_type"] == "openchat" and one["member_id"] in chats
    ]
    return {
        "token": document.token,
        "node_token": document.node_token,
        "kind": document.kind,
        "title": document.title,
        "url": platform.library.url(document),
        "owner": document.owner,
        "link": document.link,
        "manage": document.manage,
        "members": list(document.members),
        "groups": names,
        "readers": [{"open_id": one, "name": people[one].name} for one in readers],
        "deleted": document.deleted,
        "text": plain_text(document),
        "comments": [_shown(one) for one in document.comments],
    }


def _shown(comment: Comment) -> dict[str, Any]:
    """A thread as the page shows it."""
    names = ("comment_id", "quote", "is_solved")
    replies = [
        {
            "reply_id": one["reply_id"],
            "author": _name(one["user_id"]),
            "open_id": one["user_id"],
            "text": "".join(map(_words, one["elements"])),
        }
        for one in comment["replies"]
    ]
    return {**{name: comment[name] for name in names}, "replies": replies}


def _words(element: dict[str, Any]) -> str:
    if element["type"] == "person":
        return f"@{_name(element['person']['user_id'])}"
    return str(element.get("text_run", {}).get("text") or element["docs_link"]["url"])


def _name(open_id: str) -> str:
    person = current_platform().world.people.get(open_id)
    return person.name if person else open_id
