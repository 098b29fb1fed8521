"""What the REST views share: the platform, the request body, and the answers."""

import json
import time
from typing import Any

from flask import Response, current_app, g, request
from werkzeug.sansio.multipart import Data, Epilogue, Field, MultipartDecoder

from sandbox.errors import ApiError, not_an_option, not_played, too_fast_for_gateway
from sandbox.faults import PreparedFault, cut_connection
from sandbox.platform import SandboxPlatform
from sandbox.world.entities import new_id
from sandbox.world.limits import MINUTE_PACES, PACES, PER_MINUTE, PER_S
from sandbox.world.messaging import Draft

ID_TYPES = ("open_id", "union_id", "user_id")


def current_platform() -> SandboxPlatform:
    """The platform that this application serves."""
    platform: SandboxPlatform = current_app.extensions["sandbox"]
    return platform


def note_call() -> Response | None:
    """Record the app's call; the answer of a prepared fault, or None."""
    raw, port = request.get_data(), int(request.environ.get("REMOTE_PORT") or 0)
    board = current_platform().switchboard
    g.call = board.record(request.method, request.path, request.args.to_dict(), raw, port)
    g.fault = board.take(request.method, request.path)
    if g.fault is None:
        return None
    time.sleep(g.fault.delay_s)
    return _fault_answer(g.fault) if g.fault.answers else None


def finish_call(response: Response) -> Response:
    """The answer with its log id; a prepared fault cuts the connection instead."""
    if "call" not in g:
        return response  # refused before it was looked at
    response.headers.setdefault("X-Tt-Logid", new_log_id())
    g.call.status = response.status_code
    if g.fault is not None and g.fault.drop and not cut_connection(request.environ):
        return Response(status=502)
    return response


def refused(exc: ApiError) -> Response:
    """The answer that says so."""
    response = json_response(exc.body(), exc.status)
    response.headers.update(exc.headers)
    return response


def new_log_id() -> str:
    """An id as Feishu gives each answer."""
    return time.strftime("%Y%m%d%H%M%S") + new_id("", 20).upper()


def _fault_answer(fault: PreparedFault) -> Response:
    body = fault.body
    if body is None:
        body = {"code": fault.code or 0, "msg": "injected fault"}
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    response = Response(text, status=fault.status, content_type="application/json; charset=utf-8")
    response.headers.update(fault.headers)
    return response


def json_body() -> dict[str, Any]:
    """The request's JSON object. Raises ApiError 9499 for anything else."""
    try:
        body = json.loads(request.get_data() or b"{}")
    except ValueError:
        raise ApiError(9499, "Bad Request") from None
    if not isinstance(body, dict):
        raise ApiError(9499, "Bad Request")
    return body


def require_open_ids(kind: str) -> None:
    """Raises ApiError for a call that names people by other ids."""
    if kind not in ID_TYPES:
        raise not_an_option("user_id_type", kind, ID_TYPES)
    if kind != ID_TYPES[0]:
        raise not_played(f"user_id_type={kind}")


def draft(body: dict[str, Any]) -> Draft:
    """The message that a create or reply request describes."""
    size = len(request.get_data())
    return Draft(body.get("msg_type"), body.get("content"), body.get("uuid") or "", size)


def check_pace(api: str) -> None:
    """Count a call of `api`; call under the world's lock. Raises ApiError 99991400."""
    platform = current_platform()
    switches, allow = platform.world.switches, platform.limiter.allow
    if switches.rate_limits and not allow("api", api, PACES.get(api, PER_S)):
        raise too_fast_for_gateway(1)
    per_minute = MINUTE_PACES.get(api, PER_MINUTE)
    if switches.minute_limits and not allow("minute", api, per_minute, 60):
        raise too_fast_for_gateway(platform.limiter.wait_s("minute", api, 60))


def done(data: dict[str, Any]) -> Response:
    """`{"code": 0, "msg": "success", "data": ...}`"""
    return json_response({"code": 0, "msg": "success", "data": data})


def json_response(body: dict[str, Any], status: int = 200) -> Response:
    """JSON with characters as they are."""
    text = json.dumps(body, ensure_ascii=False)
    return Response(text, status=status, content_type="application/json; charset=utf-8")


def part_of_form(name: str) -> tuple[bytes | None, str]:
    """The bytes of a part of a multipart form and its type; None where there is no such part.

    Feishu's own client gives no file name, and Flask takes such a part for text.
    """
    if upload := request.files.get(name):
        return upload.read(), upload.mimetype
    if name not in request.form:
        return None, ""
    decoder = MultipartDecoder(request.mimetype_params["boundary"].encode())
    decoder.receive_data(request.get_data())
    decoder.receive_data(None)
    data, current = b"", ""
    while not isinstance(event := decoder.next_event(), Epilogue):
        if isinstance(event, Field):
            current = event.name
        elif isinstance(event, Data) and current == name:
            data += event.data
    return data, ""
