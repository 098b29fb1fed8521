"""Creating an app by scanning a code: the endpoint of accounts.feishu.cn, and the scan.

Shapes as lark-oapi's `register_app` reads them (scene/registration). `POST /sandbox/api/scan` is
the person who opens the link on their phone.
"""

from typing import Any

from flask import Blueprint, Response, request

from sandbox.control_body import control_body, text_of
from sandbox.http import current_platform, json_response
from sandbox.world.actors import ControlRefused
from sandbox.world.app_console import INTERVAL_S, LIFE_S, AppConsole, BadLink, Registration


def accounts() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("accounts", __name__)
    blueprint.add_url_rule("/oauth/v1/app/registration", view_func=register, methods=["POST"])
    return blueprint


def register() -> Response:
    """`action` is init, begin or poll; the body is a form."""
    platform, action = current_platform(), request.form.get("action")
    with platform.world.lock:
        console, now = platform.world.console, platform.config.clock()
        if action == "init":
            return json_response({"nonce": "", "supported_auth_methods": ["client_secret"]})
        if action == "begin":
            return json_response(_begun(console.begin(now)))
        if action == "poll":
            answer, status = _polled(console, request.form.get("device_code", ""), now)
            return json_response(answer, status)
    return json_response({"error": "invalid_request"}, 400)


def scan() -> Response:
    """`{link, confirm: true | false, brand: feishu | lark}`: somebody opens the link."""
    body, world = control_body(), current_platform().world
    with world.lock:
        try:
            world.console.scanned(
                text_of(body, "link"),
                confirmed=bool(body.get("confirm", True)),
                brand=text_of(body, "brand", "feishu"),
            )
        except BadLink as exc:
            raise ControlRefused(str(exc)) from None
        return json_response(_console_view(world.console))


def console() -> Response:
    """What the app was granted, and what it is subscribed to."""
    world = current_platform().world
    with world.lock:
        return json_response(_console_view(world.console))


def set_console() -> Response:
    """`{granted: [scope], connections: number}`: an administrator changes the app."""
    body, world = control_body(), current_platform().world
    with world.lock:
        if "granted" in body:
            world.console.granted = {str(one) for one in body["granted"]}
        world.console.connections = int(body.get("connections", world.console.connections))
        return json_response(_console_view(world.console))


def _begun(made: Registration) -> dict[str, Any]:
    link = f"{request.host_url}page/launcher?user_code={made.user_code}"
    return {
        "device_code": made.device_code,
        "user_code": made.user_code,
        "verification_uri": f"{request.host_url}page/launcher",
        "verification_uri_complete": link,
        "expires_in": LIFE_S,
        "interval": INTERVAL_S,
    }


def _polled(console: AppConsole, device_code: str, now: float) -> tuple[dict[str, Any], int]:
    platform, made = current_platform(), console.registrations.get(device_code)
    if made is None or now - made.begun_at > LIFE_S:
        return {"error": "expired_token", "error_description": "the code has expired"}, 400
    if made.outcome == "denied":
        return {"error": "access_denied", "error_description": "the user said no"}, 400
    if made.outcome == "waiting":
        return {"error": "authorization_pending", "error_description": ""}, 400
    scanner = next(one for one in platform.world.people.values() if one.kind == "user")
    return {
        "client_id": platform.config.app_id,
        "client_secret": platform.config.app_secret,
        "user_info": {"open_id": scanner.open_id, "tenant_brand": made.brand},
    }, 200


def _console_view(console: AppConsole) -> dict[str, Any]:
    return {
        "granted": sorted(console.granted),
        "events": sorted(console.events),
        "callbacks": sorted(console.callbacks),
        "connections": console.connections,
    }
