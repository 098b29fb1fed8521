"""REST views of comments in documents (open.feishu.cn, drive-v1 file-comment and
file-comment-reply). `g.user` is whose token it is; the app's own is None."""

from typing import Any

from flask import request

from sandbox.errors import ApiError
from sandbox.http import current_platform, json_body
from sandbox.views.documents import caller, page_bounds, page_shape, readable
from sandbox.world.comments import COMMENTED, Comment, comment_shape, reply_shape
from sandbox.world.entities import SandboxDocument

PER_PAGE = 50
MOST_PER_PAGE = 100
MOST_IDS = 100
_READ_TYPES = COMMENTED | {"slides"}


def list_comments(file_token: str) -> dict[str, Any]:
    """GET /drive/v1/files/:token/comments"""
    query, size = request.args, _page_size()
    document = _document(file_token, _READ_TYPES)
    wanted = [
        one
        for one in document.comments
        if all(
            query.get(name) in (None, str(one[name]).lower()) for name in ("is_whole", "is_solved")
        )
    ]
    start, end = page_bounds(query.get("page_token", ""), size, len(wanted), ApiError(1069302))
    return page_shape([comment_shape(one) for one in wanted[start:end]], end, len(wanted))


def query_comments(file_token: str) -> dict[str, Any]:
    """POST /drive/v1/files/:token/comments/batch_query"""
    ids = json_body().get("comment_ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MOST_IDS:
        raise ApiError(1069302)
    document = _document(file_token, _READ_TYPES)
    found = [one for one in document.comments if one["comment_id"] in ids]
    return {"items": [comment_shape(one) for one in found]}


def list_replies(file_token: str, comment_id: str) -> dict[str, Any]:
    """GET /drive/v1/files/:token/comments/:id/replies"""
    size = _page_size()
    replies = _comment(_document(file_token, _READ_TYPES), comment_id)["replies"]
    token = request.args.get("page_token", "")
    start, end = page_bounds(token, size, len(replies), ApiError(1069302))
    return page_shape([reply_shape(one) for one in replies[start:end]], end, len(replies))


def create_reply(file_token: str, comment_id: str) -> dict[str, Any]:
    """POST /drive/v1/files/:token/comments/:id/replies. There is no uuid: said twice, it is there
    twice. Comments on a whole document, and solved ones, take no reply."""
    platform, body = current_platform(), json_body()
    document = _document(file_token, COMMENTED)
    comment = _comment(document, comment_id)
    elements = platform.comments.checked(_elements(body))
    if comment["is_whole"] or comment["is_solved"]:
        raise ApiError(1069302)
    said = platform.comments.reply(document, comment, _author(), elements)
    return reply_shape(said)


def create_comment(file_token: str) -> dict[str, Any]:
    """POST /drive/v1/files/:token/comments, on the whole document."""
    platform, body = current_platform(), json_body()
    replies = body.get("reply_list", {}).get("replies")
    if not isinstance(replies, list) or len(replies) != 1:
        raise ApiError(1069302)
    document = _document(file_token, frozenset({"docx", "doc"}))
    elements = platform.comments.checked(_elements(replies[0]))
    comment = platform.comments.add(document, _author(), elements)
    return comment_shape(comment)


def delete_reply(file_token: str, comment_id: str, reply_id: str) -> dict[str, Any]:
    """DELETE /drive/v1/files/:token/comments/:id/replies/:reply_id, one's own."""
    platform = current_platform()
    document = _document(file_token, _READ_TYPES)
    comment = _comment(document, comment_id)
    said = next((one for one in comment["replies"] if one["reply_id"] == reply_id), None)
    if said is None:
        raise ApiError(1069307, status=404)
    if said["user_id"] != _author():
        raise ApiError(1069303, status=403)
    platform.comments.remove(document, comment, reply_id)
    return {}


def _author() -> str:
    return caller() or current_platform().world.bot.open_id


def _document(token: str, kinds: frozenset[str]) -> SandboxDocument:
    kind = request.args.get("file_type", "")
    if kind not in kinds:
        raise ApiError(1069302)
    refusals = (ApiError(1069307, status=404), ApiError(1069304), ApiError(1069303, status=403))
    return readable(token, kind, refusals)


def _comment(document: SandboxDocument, comment_id: str) -> Comment:
    found = (one for one in document.comments if one["comment_id"] == comment_id)
    comment = next(found, None)
    if comment is None:
        raise ApiError(1069307, status=404)
    return comment


def _elements(body: Any) -> object:
    content = body.get("content") if isinstance(body, dict) else None
    return content.get("elements") if isinstance(content, dict) else None


def _page_size() -> int:
    size = request.args.get("page_size", str(PER_PAGE))
    if not (size.isdigit() and 1 <= int(size) <= MOST_PER_PAGE):
        raise ApiError(1069302)
    return int(size)
