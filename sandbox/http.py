"""What the REST views share: the platform, the request body, and the answers."""

import json
from typing import Any

from flask import Response, current_app, request
from werkzeug.sansio.multipart import Data, Epilogue, Field, MultipartDecoder

from sandbox.errors import ApiError, too_fast_for_gateway
from sandbox.platform import SandboxPlatform
from sandbox.world.limits import PACES, PER_MINUTE, PER_S
from sandbox.world.messaging import Draft


def current_platform() -> SandboxPlatform:
    """The platform that this application serves."""
    platform: SandboxPlatform = current_app.extensions["sandbox"]
    return platform


def json_body() -> dict[str, Any]:
    """The request's JSON object. Raises ApiError 9499 for anything else."""
    try:
        body = json.loads(request.get_data() or b"{}")
    except ValueError:
        raise ApiError(9499, "Bad Request") from None
    if not isinstance(body, dict):
        raise ApiError(9499, "Bad Request")
    return body


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
    if switches.minute_limits and not allow("minute", api, PER_MINUTE, 60):
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
