"""The platform's REST interface: `/open-apis/...`.

Request and response shapes: open.feishu.cn, the page of each method. Every response carries
`X-Tt-Logid`.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response, g, request

from sandbox.errors import ApiError, scope_missing
from sandbox.faults import PreparedFault, cut_connection
from sandbox.http import check_pace, current_platform, json_body, json_response
from sandbox.views import cards, directory, messages
from sandbox.world import scopes
from sandbox.world.entities import new_id


def open_apis() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("open_apis", __name__, url_prefix="/open-apis")
    blueprint.before_request(_before)
    blueprint.after_request(_after)
    blueprint.register_error_handler(ApiError, _refuse)
    for one in ENDPOINTS:
        blueprint.add_url_rule(one.rule, one.name, one.view, methods=[one.method])
    return blueprint


def issue_token() -> Response:
    """Token at the top level of the body, not under `data`."""
    platform, body = current_platform(), json_body()
    with platform.world.lock:
        token, left_s = platform.tokens.issue(body.get("app_id"), body.get("app_secret"))
    return json_response({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": left_s})


def _before() -> Response | None:
    platform, raw = current_platform(), request.get_data()
    port = int(request.environ.get("REMOTE_PORT") or 0)
    board = platform.switchboard
    g.call = board.record(request.method, request.path, request.args.to_dict(), raw, port)
    g.fault = board.take(request.method, request.path)
    if g.fault is not None:
        time.sleep(g.fault.delay_s)
        if g.fault.answers:
            return _fault_answer(g.fault)
    if request.endpoint != "open_apis.issue_token":
        with platform.world.lock:
            platform.tokens.check(request.headers.get("Authorization", ""))
            if not platform.world.may(any_of := _SCOPES[str(request.endpoint)]):
                raise scope_missing(platform.config.app_id, any_of)
            check_pace(str(request.endpoint))
    return None


def _after(response: Response) -> Response:
    if "call" not in g:
        return response  # refused before it was looked at
    response.headers.setdefault(
        "X-Tt-Logid", time.strftime("%Y%m%d%H%M%S") + new_id("", 20).upper()
    )
    g.call.status = response.status_code
    if g.fault is not None and g.fault.drop and not cut_connection(request.environ):
        return Response(status=502)
    return response


def _refuse(exc: ApiError) -> Response:
    response = json_response(exc.body(), exc.status)
    response.headers.update(exc.headers)
    return response


def _fault_answer(fault: PreparedFault) -> Response:
    body = fault.body
    if body is None:
        body = {"code": fault.code or 0, "msg": "injected fault"}
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    response = Response(text, status=fault.status, content_type="application/json; charset=utf-8")
    response.headers.update(fault.headers)
    return response


_MESSAGES, _CARDS = "/im/v1/messages", "/cardkit/v1/cards"


@dataclass(frozen=True)
class ApiMethod:
    """One method of the platform; `scopes`: any one of them opens it, none are needed if empty."""

    method: str
    rule: str
    view: Callable[..., Any]
    scopes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.view.__name__


ENDPOINTS = (
    ApiMethod("POST", "/auth/v3/tenant_access_token/internal", issue_token),
    ApiMethod("GET", "/bot/v3/info", directory.bot_info),
    ApiMethod("GET", "/application/v6/scopes", directory.granted_scopes),
    ApiMethod("GET", "/event/v1/connection", directory.online_connections),
    ApiMethod("POST", _MESSAGES, messages.create_message, scopes.SEND),
    ApiMethod("GET", _MESSAGES, messages.list_messages, scopes.HISTORY),
    ApiMethod("GET", _MESSAGES + "/<message_id>", messages.get_message, scopes.READ),
    ApiMethod("POST", _MESSAGES + "/<message_id>/reply", messages.reply_message, scopes.SEND),
    ApiMethod("PATCH", _MESSAGES + "/<message_id>", messages.patch_message, scopes.CHANGE),
    ApiMethod("PUT", _MESSAGES + "/<message_id>", messages.update_message, scopes.CHANGE),
    ApiMethod("DELETE", _MESSAGES + "/<message_id>", messages.delete_message, scopes.RECALL),
    ApiMethod(
        "POST", _MESSAGES + "/<message_id>/reactions", messages.create_reaction, scopes.REACT
    ),
    ApiMethod(
        "DELETE",
        _MESSAGES + "/<message_id>/reactions/<reaction_id>",
        messages.delete_reaction,
        scopes.REACT,
    ),
    ApiMethod(
        "GET",
        _MESSAGES + "/<message_id>/resources/<file_key>",
        messages.get_resource,
        scopes.HISTORY,
    ),
    ApiMethod("POST", "/ephemeral/v1/send", messages.send_ephemeral, scopes.CHANGE),
    ApiMethod("POST", "/ephemeral/v1/delete", messages.delete_ephemeral, scopes.CHANGE),
    ApiMethod("POST", "/im/v1/images", messages.upload_image, scopes.UPLOAD),
    ApiMethod("POST", "/im/v1/files", messages.upload_file, scopes.UPLOAD),
    ApiMethod("GET", "/im/v1/chats/<chat_id>", directory.get_chat, scopes.CHAT),
    ApiMethod("GET", "/im/v1/chats/<chat_id>/members", directory.list_members, scopes.MEMBERS),
    ApiMethod("POST", "/contact/v3/users/basic_batch", directory.basic_batch, scopes.NAMES),
    ApiMethod("POST", _CARDS, cards.create_card, scopes.CARDKIT),
    ApiMethod("PUT", _CARDS + "/<card_id>", cards.update_card, scopes.CARDKIT),
    ApiMethod(
        "PUT",
        _CARDS + "/<card_id>/elements/<element_id>/content",
        cards.stream_text,
        scopes.CARDKIT,
    ),
    ApiMethod("PATCH", _CARDS + "/<card_id>/settings", cards.card_settings, scopes.CARDKIT),
    ApiMethod("POST", _CARDS + "/<card_id>/batch_update", cards.batch_update, scopes.CARDKIT),
    ApiMethod("POST", "/interactive/v1/card/update", cards.update_after_click, scopes.CHANGE),
)
_SCOPES = {f"open_apis.{one.name}": one.scopes for one in ENDPOINTS}
