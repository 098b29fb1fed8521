"""What the REST views share: the platform, the request body, and the answers."""

import json
from typing import Any

from flask import Response, current_app, request

from sandbox.errors import ApiError
from sandbox.platform import Platform
from sandbox.world.messaging import Draft


def current_platform() -> Platform:
    """The platform that this application serves."""
    platform: Platform = current_app.extensions["sandbox"]
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


def within(kind: str, key: str, limit: int) -> bool:
    """Count a call against a limit per second; call under the world's lock."""
    platform = current_platform()
    return not platform.world.switches.rate_limits or platform.limiter.allow(kind, key, limit)


def done(data: dict[str, Any]) -> Response:
    """`{"code": 0, "msg": "success", "data": ...}`"""
    return json_response({"code": 0, "msg": "success", "data": data})


def json_response(body: dict[str, Any], status: int = 200) -> Response:
    """JSON with characters as they are."""
    text = json.dumps(body, ensure_ascii=False)
    return Response(text, status=status, content_type="application/json; charset=utf-8")
