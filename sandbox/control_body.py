"""Reading requests of the control interface. Raises Refusal with a sentence for the caller."""

import json
from typing import Any

from flask import request

from sandbox.world.actors import ControlRefused


def control_body() -> dict[str, Any]:
    """The JSON object that was sent."""
    try:
        body = json.loads(request.get_data())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ControlRefused("the body must be a JSON object")
    return body


def text_of(body: dict[str, Any], name: str, default: str | None = None) -> str:
    """A string of the body; refused when it is missing and has no default."""
    value = body.get(name, default)
    if not isinstance(value, str):
        raise ControlRefused(f"{name!r} must be given, as a string")
    return value


def count_of(body: dict[str, Any], name: str) -> int:
    """How often, 0 to 1000; once unless said."""
    value = body.get(name, 1)
    if not isinstance(value, int) or not 0 <= value <= 1000:
        raise ControlRefused(f"{name!r} must be a number from 0 to 1000")
    return value


def number_of(body: dict[str, Any], name: str, default: int) -> int:
    """A whole number of the body."""
    value = body.get(name, default)
    if not isinstance(value, int):
        raise ControlRefused(f"{name!r} must be a whole number")
    return value


def number_asked(name: str, default: int) -> int:
    """A number of the query."""
    return request.args.get(name, default, type=int)
