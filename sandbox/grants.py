"""Approving that the app acts as a person: the device grant's first call, its page, and control.

`POST {accounts}/oauth/v1/device_authorization` as larksuite/cli calls it. The link leads to a page
of the sandbox, where one chooses who approves. The page and tests use `/sandbox/api/grants`.
"""

from typing import Any

from flask import Blueprint, Response, request, send_from_directory

from sandbox.control_body import control_body, text_of
from sandbox.errors import ApiError, GrantRefused
from sandbox.http import current_platform, finish_call, json_response, note_call, refused
from sandbox.page import POLICY, STATIC
from sandbox.world import events
from sandbox.world.actors import ControlRefused
from sandbox.world.entities import USER
from sandbox.world.user_scopes import USER_SCOPES
from sandbox.world.user_tokens import (
    APPROVED,
    BOTH,
    DEVICE_LIFE_S,
    REFUSED,
    REVOKED_KINDS,
    WAITING,
    DeviceRequest,
    UserGrant,
)

PAGE = "oauth/v1/device/verify"
REASON = "Revoked by user action."


def device_grants() -> Blueprint:
    """The blueprint; the platform is `current_app.extensions["sandbox"]`."""
    blueprint = Blueprint("grants", __name__)
    blueprint.before_request(_before)
    blueprint.after_request(finish_call)
    blueprint.register_error_handler(ApiError, refused)
    blueprint.add_url_rule(
        "/oauth/v1/device_authorization", view_func=device_authorization, methods=["POST"]
    )
    blueprint.add_url_rule(f"/{PAGE}", view_func=verify)
    return blueprint


def device_authorization() -> Response:
    """A form of `client_id` and `scope`; the app names itself by Basic authorization."""
    platform = current_platform()
    with platform.world.lock:
        _check_app()
        made = platform.user_tokens.begin(request.form.get("scope", ""))
    return json_response(
        {
            "device_code": made.device_code,
            "user_code": made.user_code,
            "verification_uri": f"{request.host_url}{PAGE}",
            "verification_uri_complete": f"{request.host_url}{PAGE}?user_code={made.user_code}",
            "expires_in": DEVICE_LIFE_S,
            "interval": int(made.interval_s),
        }
    )


def verify() -> Response:
    """The page where somebody approves or refuses; opening it changes nothing."""
    answer = send_from_directory(STATIC, "grant.html")
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def grant_request() -> Response:
    """What `user_code` asks for: `{app, scopes: [{name, en, zh, open}], state, people}`; `state` is
    waiting, approved, refused, fetched or expired."""
    platform = current_platform()
    with platform.world.lock:
        made = _asked(request.args.get("user_code", ""))
        missing = platform.user_tokens.missing(made)
        return json_response(
            {
                "app": platform.config.bot_name,
                "scopes": [
                    {"name": one, "en": en, "zh": zh, "open": one not in missing}
                    for one in made.scopes
                    for en, zh in (USER_SCOPES[one],)
                ],
                "state": _state(made),
                "open_id": made.open_id,
                "people": [
                    {"open_id": one.open_id, "name": one.name}
                    for one in platform.world.people.values()
                    if one.kind == "user"
                ],
            }
        )


def decide() -> Response:
    """`{as, user_code | link, approve: true | false, scopes}`: somebody approves or refuses;
    `scopes`: fewer than were asked for."""
    platform, body = current_platform(), control_body()
    code = text_of(body, "user_code", "") or text_of(body, "link", "").rpartition("user_code=")[2]
    with platform.world.lock:
        made, person = _asked(code), platform.actors.person(text_of(body, "as"))
        if person.kind != USER:
            raise ControlRefused("only a person can approve")
        if _state(made) != WAITING:
            raise ControlRefused("nothing waits behind this link any more")
        if body.get("approve", True):
            if missing := platform.user_tokens.missing(made):
                raise ControlRefused(f"20027: the app does not have the scopes {missing}")
            chosen = body.get("scopes", list(made.scopes))
            made.scopes = tuple(one for one in made.scopes if one in chosen)
        made.outcome = APPROVED if body.get("approve", True) else REFUSED
        made.open_id = person.open_id
        return json_response({"state": made.outcome, "scopes": list(made.scopes)})


def granted() -> Response:
    """`{items: [{open_id, name, scopes, since_ms}]}`: who has connected."""
    platform = current_platform()
    with platform.world.lock:
        items = [_grant_view(one) for one in platform.user_tokens.grants()]
    return json_response({"items": items})


def revoke() -> Response:
    """`{as, kind, reason, silently}`; the app hears of it, unless `silently`: the event is lost.
    `kind`: user_access_token, refresh_token, or both."""
    platform, body = current_platform(), control_body()
    kind, reason = text_of(body, "kind", BOTH), text_of(body, "reason", REASON)
    if kind not in REVOKED_KINDS:
        raise ControlRefused(f"'kind' must be one of {REVOKED_KINDS}")
    with platform.world.lock:
        person = platform.actors.person(text_of(body, "as"))
        ended = platform.user_tokens.revoke(person.open_id, kind)
        envelope = events.token_revoked(platform.world, person, kind, reason)
    if ended and not body.get("silently"):
        platform.pusher.push(envelope)
    return json_response({"revoked": ended})


def open_scopes() -> Response:
    """`{granted: [scope], refreshable}`: an administrator opens scopes to the app for people's
    tokens, and turns refreshing on or off; what a living token may do changes with it."""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        tokens = platform.user_tokens
        if "granted" in body:
            tokens.openable = {str(one) for one in body["granted"]}
        tokens.refreshable = bool(body.get("refreshable", tokens.refreshable))
        granted_now = sorted(tokens.openable)
    return json_response({"granted": granted_now, "refreshable": tokens.refreshable})


def _before() -> Response | None:
    return note_call() if request.method == "POST" else None


def _check_app() -> None:
    config, named = current_platform().config, request.authorization
    if named is not None and request.form.get("client_secret"):
        raise GrantRefused("invalid_request", 20070)
    app_id = named.username if named else request.form.get("client_id")
    secret = named.password if named else request.form.get("client_secret")
    if not app_id or not secret:
        raise GrantRefused("invalid_request", 20063)
    if app_id != config.app_id or request.form.get("client_id", app_id) != app_id:
        raise GrantRefused("invalid_client", 20048)
    if secret != config.app_secret:
        raise GrantRefused("invalid_client", 20002)


def _asked(user_code: str) -> DeviceRequest:
    made = current_platform().user_tokens.request(user_code)
    if made is None:
        raise ControlRefused("no request has this code")
    return made


def _state(made: DeviceRequest) -> str:
    over = current_platform().user_tokens.is_over(made)
    return "expired" if over and made.outcome == WAITING else made.outcome


def _grant_view(grant: UserGrant) -> dict[str, Any]:
    person = current_platform().world.people[grant.open_id]
    return {
        "open_id": grant.open_id,
        "name": person.name,
        "scopes": list(grant.scopes),
        "since_ms": int(grant.since * 1000),
    }
