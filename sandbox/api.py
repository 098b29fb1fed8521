"""The platform's REST interface: `/open-apis/...`.

Request and response shapes: open.feishu.cn, the page of each method. Every response carries
`X-Tt-Logid`.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g, request

from sandbox.cards import card_views
from sandbox.errors import ApiError, too_fast_for_gateway
from sandbox.faults import Fault, cut_connection
from sandbox.http import current_platform, json_body, json_response, within
from sandbox.world import directory_views, message_views
from sandbox.world.entities import new_id

PER_API_PER_S = 50


def open_apis() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("open_apis", __name__, url_prefix="/open-apis")
    blueprint.before_request(_before)
    blueprint.after_request(_after)
    blueprint.register_error_handler(ApiError, _refuse)
    _routes(blueprint)
    return blueprint


def _routes(blueprint: Blueprint) -> None:
    def route(method: str, rule: str, view: Callable[..., Any]) -> None:
        blueprint.add_url_rule(rule, view.__name__, view, methods=[method])

    route("POST", "/auth/v3/tenant_access_token/internal", issue_token)
    route("GET", "/bot/v3/info", directory_views.bot_info)
    route("GET", "/application/v6/scopes", directory_views.granted_scopes)
    route("GET", "/event/v1/connection", directory_views.online_connections)
    route("POST", "/im/v1/messages", message_views.create_message)
    route("GET", "/im/v1/messages", message_views.list_messages)
    route("GET", "/im/v1/messages/<message_id>", message_views.get_message)
    route("POST", "/im/v1/messages/<message_id>/reply", message_views.reply_message)
    route("PATCH", "/im/v1/messages/<message_id>", message_views.patch_message)
    route("PUT", "/im/v1/messages/<message_id>", message_views.update_message)
    route("DELETE", "/im/v1/messages/<message_id>", message_views.delete_message)
    route("POST", "/im/v1/messages/<message_id>/reactions", message_views.create_reaction)
    route(
        "DELETE",
        "/im/v1/messages/<message_id>/reactions/<reaction_id>",
        message_views.delete_reaction,
    )
    route("GET", "/im/v1/messages/<message_id>/resources/<file_key>", message_views.get_resource)
    route("POST", "/ephemeral/v1/send", message_views.send_ephemeral)
    route("POST", "/ephemeral/v1/delete", message_views.delete_ephemeral)
    route("POST", "/im/v1/images", message_views.upload_image)
    route("POST", "/im/v1/files", message_views.upload_file)
    route("GET", "/im/v1/chats/<chat_id>", directory_views.get_chat)
    route("GET", "/im/v1/chats/<chat_id>/members", directory_views.list_members)
    route("POST", "/contact/v3/users/basic_batch", directory_views.basic_batch)
    route("POST", "/cardkit/v1/cards", card_views.create_card)
    route("PUT", "/cardkit/v1/cards/<card_id>", card_views.update_card)
    route(
        "PUT", "/cardkit/v1/cards/<card_id>/elements/<element_id>/content", card_views.stream_text
    )
    route("PATCH", "/cardkit/v1/cards/<card_id>/settings", card_views.card_settings)
    route("POST", "/cardkit/v1/cards/<card_id>/batch_update", card_views.batch_update)
    route("POST", "/interactive/v1/card/update", card_views.update_after_click)


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
            if not within("api", str(request.endpoint), PER_API_PER_S):
                raise too_fast_for_gateway(1)
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


def _fault_answer(fault: Fault) -> Response:
    body = fault.body
    if body is None:
        body = {"code": fault.code or 0, "msg": "injected fault"}
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    response = Response(text, status=fault.status, content_type="application/json; charset=utf-8")
    response.headers.update(fault.headers)
    return response
