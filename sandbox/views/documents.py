"""REST views that read documents and the wiki, search, and tell who can read what (open.feishu.cn,
docs-v1, docx-v1, wiki-v2, search-v2 doc_wiki, drive-v2 permission-public, drive-v1
permission-member). `g.user` is whose token it is."""

import re
from typing import Any

from flask import g, request

from sandbox.errors import ApiError, not_played
from sandbox.http import current_platform, json_body
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import (
    ACTIONS,
    BASE,
    BLOCK_TYPES,
    BLOCKS_OF_OTHERS,
    DOCX,
    SHEET,
    WIKI,
    Library,
    markdown,
    member_shape,
    plain_text,
)

MOST_BYTES = 10 * 1024 * 1024
MOST_RESULTS = 20
MOST_BLOCKS_PER_PAGE = 500
MOST_QUERY = 50
PLAYED_FILTERS = ("doc_types", "creator_ids", "only_title")
DOC_TYPES = frozenset(
    "DOC SHEET BITABLE MINDNOTE FILE WIKI DOCX FOLDER CATALOG SLIDES SHORTCUT".split()
)
_ENTITY = {DOCX: "DOCX", SHEET: "SHEET", BASE: "BITABLE"}


def document_content() -> dict[str, Any]:
    """GET /docs/v1/content?doc_token&doc_type=docx&content_type=markdown"""
    token, query = request.args.get("doc_token", ""), request.args
    if (query.get("doc_type"), query.get("content_type")) != ("docx", "markdown"):
        raise ApiError(2889904)
    if not 22 <= len(token) <= 27:
        raise ApiError(2889904)
    refusals = (ApiError(2889914), ApiError(2889906, status=403), ApiError(2889902, status=403))
    text = markdown(readable(token, DOCX, refusals))
    if len(text.encode()) > MOST_BYTES:
        raise ApiError(2889925, status=500)
    return {"content": text}


def get_document(document_id: str) -> dict[str, Any]:
    """GET /docx/v1/documents/:id"""
    document = _docx(document_id)
    shape = {
        "document_id": document.token,
        "revision_id": document.revision,
        "title": document.title,
    }
    return {"document": shape}


def list_blocks(document_id: str) -> dict[str, Any]:
    """GET /docx/v1/documents/:id/blocks, without what the blocks say; the page itself is first."""
    document = _docx(document_id)
    page = {"block_id": document.token, "block_type": 1, "parent_id": "", "page": {}}
    blocks = [
        {"block_id": f"blk{index:05}", "parent_id": document.token, **_block(one)}
        for index, one in enumerate(document.body["blocks"])
    ]
    size, token = request.args.get("page_size", "500"), request.args.get("page_token", "")
    if not size.isdigit() or not 0 < int(size) <= MOST_BLOCKS_PER_PAGE:
        raise ApiError(1770001)
    items = [page, *blocks]
    start, end = page_bounds(token, int(size), len(items), ApiError(1770001))
    return page_shape(items[start:end], end, len(items))


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kind, source = block["kind"], block.get("source", "")
    if kind in BLOCKS_OF_OTHERS:
        number, name, field = BLOCKS_OF_OTHERS[kind]
        return {"block_type": number, name: {field: source} if field else {}}
    return {"block_type": BLOCK_TYPES.get(kind, 2)}


def get_node() -> dict[str, Any]:
    """GET /wiki/v2/spaces/get_node?token&obj_type"""
    token, kind = request.args.get("token", ""), request.args.get("obj_type", WIKI)
    if not token or kind not in (DOCX, SHEET, BASE, WIKI, "doc", "mindnote", "file", "slides"):
        raise ApiError(131002)
    refusals = (ApiError(131005), ApiError(131005), ApiError(131006))
    document = readable(token, kind, refusals)
    if not document.node_token:
        raise ApiError(131005, "not found: document is not in wiki")
    created = str(document.create_ms // 1000)
    shape = {
        "space_id": document.space_id,
        "node_token": document.node_token,
        "obj_token": document.token,
        "obj_type": document.kind,
        "parent_node_token": "",
        "node_type": "origin",
        "origin_node_token": document.node_token,
        "origin_space_id": document.space_id,
        "has_child": False,
        "title": document.title,
        "obj_create_time": created,
        "obj_edit_time": str(document.update_ms // 1000),
        "node_create_time": created,
        "creator": document.owner,
        "owner": document.owner,
        "node_creator": document.owner,
    }
    return {"node": shape}


def search_documents() -> dict[str, Any]:
    """POST /search/v2/doc_wiki/search, as the person whose token it is."""
    body = json_body()
    query, size = body.get("query"), body.get("page_size", 0) or MOST_RESULTS
    filters = [body[name] for name in ("doc_filter", "wiki_filter") if name in body]
    if not isinstance(query, str) or len(query) > MOST_QUERY or not filters:
        raise ApiError(1274001)
    if not isinstance(size, int) or not 0 <= size <= MOST_RESULTS:
        raise ApiError(1274001)
    if any(DOC_TYPES.isdisjoint(one.get("doc_types") or DOC_TYPES) for one in filters):
        raise ApiError(1274002)
    for name in (name for one in filters for name in one if name not in PLAYED_FILTERS):
        raise not_played(name)
    platform = current_platform()
    found = platform.library.search(g.user.open_id, query)
    found = [one for one in found if _passes(one, body, query)]
    start, end = page_bounds(body.get("page_token") or "", size, len(found), ApiError(1274001))
    units = [_result(platform.library, one, query) for one in found[start:end]]
    page = page_shape(units, end, len(found), name="res_units")
    return {"total": len(found), **page}


def _passes(document: SandboxDocument, body: dict[str, Any], query: str) -> bool:
    """True if the filter for documents of its place lets it through."""
    wanted = body.get("wiki_filter" if document.node_token else "doc_filter")
    if wanted is None:
        return False
    kinds, creators = wanted.get("doc_types"), wanted.get("creator_ids")
    kind = {_ENTITY[document.kind], "WIKI" if document.node_token else ""}
    in_title = all(word in document.title.lower() for word in query.lower().split())
    return (
        not (kinds and kind.isdisjoint(kinds))
        and not (creators and document.owner not in creators)
        and (in_title or not wanted.get("only_title"))
    )


def readable(
    token: str, kind: str, refusals: tuple[ApiError, ApiError, ApiError]
) -> SandboxDocument:
    """The document. Raises the refusal for an unknown one, a deleted one, or one that whoever calls
    cannot view."""
    platform, (unknown, deleted, forbidden) = current_platform(), refusals
    document = platform.library.find(token, kind)
    if document is None:
        raise unknown
    if document.deleted:
        raise deleted
    if not platform.library.may(document, caller()):
        raise forbidden
    return document


def caller() -> str | None:
    """The open id of the person whose token it is; None for the app's."""
    return None if g.user is None else str(g.user.open_id)


def page_bounds(token: str, size: int, total: int, invalid: ApiError) -> tuple[int, int]:
    """Where the page that `token` names begins and ends."""
    start = token.removeprefix("page-") if token else "0"
    if not start.isdigit() or (token and int(start) >= total):
        raise invalid
    return int(start), min(int(start) + size, total)


def page_shape(
    items: list[dict[str, Any]], end: int, total: int, *, name: str = "items"
) -> dict[str, Any]:
    """A page of a list; `page_token` only where more follows."""
    more = end < total
    return {name: items, "has_more": more} | ({"page_token": f"page-{end}"} if more else {})


def _docx(document_id: str) -> SandboxDocument:
    if len(document_id) != 27:
        raise ApiError(1770001)
    refusals = (ApiError(1770002, status=404), ApiError(1770003), ApiError(1770032, status=403))
    return readable(document_id, DOCX, refusals)


def _result(library: Library, document: SandboxDocument, query: str) -> dict[str, Any]:
    people = current_platform().world.people
    owner = people.get(document.owner)
    meta = {
        "doc_types": _ENTITY[document.kind],
        "update_time": document.update_ms // 1000,
        "url": library.url(document),
        "owner_name": owner.name if owner else "",
        "owner_id": document.owner,
        "is_cross_tenant": False,
        "create_time": document.create_ms // 1000,
        "token": document.node_token or document.token,
    }
    return {
        "title_highlighted": _highlighted(document.title, query),
        "summary_highlighted": _highlighted(plain_text(document)[:200], query),
        "entity_type": "WIKI" if document.node_token else "DOC",
        "result_meta": meta,
    }


def _highlighted(text: str, query: str) -> str:
    words = "|".join(re.escape(word) for word in query.split())
    return re.sub(f"({words})", r"<h>\1</h>", text, flags=re.IGNORECASE) if words else text


def public_permission(token: str) -> dict[str, Any]:
    """GET /drive/v2/permissions/:token/public?type"""
    document = _shown(token)
    outside = document.link.startswith(("anyone_", "partner_"))
    shape = {
        "external_access_entity": "open" if outside else "closed",
        "security_entity": "anyone_can_view",
        "comment_entity": "anyone_can_view",
        "share_entity": "anyone",
        "manage_collaborator_entity": document.manage,
        "link_share_entity": document.link,
        "copy_entity": "anyone_can_view",
        "lock_switch": False,
    }
    return {"permission_public": shape}


def permission_members(token: str) -> dict[str, Any]:
    """GET /drive/v1/permissions/:token/members?type; the owner is one of them."""
    document, fields = _shown(token), request.args.get("fields", "").split(",")
    owner = {"member_type": "openid", "member_id": document.owner, "perm": "full_access"}
    items = [member_shape(one, fields) for one in (owner, *document.members)]
    return {"items": items}


def may_view(token: str) -> dict[str, Any]:
    """GET /drive/v1/permissions/:token/members/auth?type&action, for whoever calls alone."""
    action, platform = request.args.get("action", ""), current_platform()
    document, library = _of_type(token), platform.library
    if action == "share":
        result = library.may_look_at_permissions(document, caller())
    elif action in ACTIONS:
        result = library.may(document, caller(), ACTIONS[action])
    else:
        raise ApiError(1063001)
    return {"auth_result": result}


def _shown(token: str) -> SandboxDocument:
    """The document, for whoever may see with whom it is shared. Raises ApiError 1063004."""
    platform = current_platform()
    document = _of_type(token)
    if not platform.library.may_look_at_permissions(document, caller()):
        raise ApiError(1063004, status=403)
    return document


def _of_type(token: str) -> SandboxDocument:
    kind = request.args.get("type", "")
    if kind not in (DOCX, SHEET, BASE, WIKI):
        raise ApiError(1063001)
    document = current_platform().library.find(token, kind)
    if document is None:
        raise ApiError(1063001)
    if document.deleted:
        raise ApiError(1063005, status=404)
    return document
