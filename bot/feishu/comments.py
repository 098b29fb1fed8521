"""The calls that read comments in documents and answer them.

Source: Feishu, drive-v1: file-comment batch_query, list and create, file-comment-reply list, create
and delete. Every call raises FeishuFailure. A reply has no uuid, so it is never repeated here; one
on a whole document or in a solved thread is refused with 1069302.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from bot.feishu.caller import Caller
from bot.feishu.comment_events import CommentPlace, CommentReply, CommentThread
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import required
from bot.feishu.pacing import FairPacer, SharedPace
from bot.feishu.retry import ONCE, RetryPolicy
from bot.feishu.transport import ApiRequest

MOST_REPLIES = 300  # of a thread; the newest count
_PATIENCE = RetryPolicy(max_attempts=3, max_total_s=10.0)
_TEN_IN_S = 6.3  # 100 a minute
_PAGE = 100

Elements = Sequence[Mapping[str, Any]]


class CommentCalls:
    """The calls, as the app itself; those that read also `as_user`, the token of a person."""

    def __init__(self, caller: Caller, pace: SharedPace, **seams: Any) -> None:
        self._caller = caller
        self._slow = FairPacer("comment lookup", 10, pace, window_s=_TEN_IN_S, **seams)

    async def thread(self, place: CommentPlace, as_user: str = "") -> CommentThread | None:
        """The thread as it is now; None: it is not there any more."""
        body = {"comment_ids": [place.comment_id]}
        path, query = f"{_path(place)}/batch_query", {"file_type": place.file_type}
        request = ApiRequest("POST", path, query, body=body, api="comment")
        data = await self._read(request, as_user)
        items = [as_dict(one) for one in as_list(data.get("items"))]
        mine = [one for one in items if as_text(one.get("comment_id")) == place.comment_id]
        if not mine:
            return None
        replies = _replies(as_dict(mine[0].get("reply_list")).get("replies"))
        if mine[0].get("has_more") is True:
            replies = await self._all_replies(place, as_user)
        return _thread(mine[0], replies)

    async def whole(self, place: CommentPlace) -> list[CommentThread]:
        """The threads on the whole document, in which a comment of the app is one of its own."""
        threads, token = list[CommentThread](), ""
        for _ in range(MOST_REPLIES // _PAGE):
            query: dict[str, str | int] = {
                "file_type": place.file_type, "is_whole": "true", "page_size": _PAGE,
                **({"page_token": token} if token else {}),
            }  # fmt: skip
            request = ApiRequest("GET", _path(place), query, api="comments")
            data = await self._read(request, "")
            for item in map(as_dict, as_list(data.get("items"))):
                replies = _replies(as_dict(item.get("reply_list")).get("replies"))
                threads.append(_thread(item, replies))
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                break
        return threads

    async def reply(self, place: CommentPlace, elements: Elements) -> str:
        """Says something in the thread; the id of the reply. Repeated, it is there twice."""
        path = f"{_path(place)}/{quote(place.comment_id, safe='')}/replies"
        body = {"content": {"elements": list(elements)}}
        request = ApiRequest("POST", path, {"file_type": place.file_type}, body, api="add reply")
        return required(await self._write(request), "reply_id")

    async def comment(self, place: CommentPlace, elements: Elements) -> str:
        """Comments on the whole document; the id of the new thread. Repeated, it is there twice."""
        content = {"content": {"elements": list(elements)}}
        body = {"reply_list": {"replies": [content]}}
        query = {"file_type": place.file_type}
        request = ApiRequest("POST", _path(place), query, body, api="add comment")
        return required(await self._write(request), "comment_id")

    async def remove(self, place: CommentPlace, reply_id: str) -> None:
        """Deletes a reply of the app."""
        thread, reply = (quote(one, safe="") for one in (place.comment_id, reply_id))
        path, query = f"{_path(place)}/{thread}/replies/{reply}", {"file_type": place.file_type}
        await self._write(ApiRequest("DELETE", path, query, api="delete reply"))

    async def _all_replies(self, place: CommentPlace, as_user: str) -> tuple[CommentReply, ...]:
        path = f"{_path(place)}/{quote(place.comment_id, safe='')}/replies"
        replies, token = list[CommentReply](), ""
        while True:
            query: dict[str, str | int] = {
                "file_type": place.file_type, "page_size": _PAGE,
                **({"page_token": token} if token else {}),
            }  # fmt: skip
            data = await self._read(ApiRequest("GET", path, query, api="replies"), as_user)
            replies += _replies(data.get("items"))
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                return tuple(replies[-MOST_REPLIES:])

    async def _read(self, request: ApiRequest, as_user: str) -> dict[str, Any]:
        call = self._caller.call(request, self._slow, request.api, _PATIENCE, as_user=as_user)
        return as_dict((await call).get("data"))

    async def _write(self, request: ApiRequest) -> dict[str, Any]:
        return as_dict((await self._caller.call(request, policy=ONCE)).get("data"))


def _path(place: CommentPlace) -> str:
    return f"/open-apis/drive/v1/files/{quote(place.file_token, safe='')}/comments"


def _thread(item: Mapping[str, Any], replies: tuple[CommentReply, ...]) -> CommentThread:
    return CommentThread(
        as_text(item.get("comment_id")),
        as_text(item.get("quote")),
        item.get("is_whole") is True,
        replies,
    )


def _replies(items: object) -> tuple[CommentReply, ...]:
    return tuple(
        CommentReply(
            as_text(one.get("reply_id")),
            as_text(one.get("user_id")),
            seconds if isinstance(seconds := one.get("create_time"), int) else 0,
            tuple(as_dict(part) for part in as_list(as_dict(one.get("content")).get("elements"))),
        )
        for one in map(as_dict, as_list(items))
    )
