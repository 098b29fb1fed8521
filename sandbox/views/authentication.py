"""REST views of people's own tokens (open.feishu.cn, authentication-management; RFC 8628), and of
the address of an app's long connection."""

from typing import Any

from flask import Response, g, request

from sandbox.config import AVATAR
from sandbox.errors import GrantRefused
from sandbox.http import check_pace, current_platform, json_body, json_response
from sandbox.world.user_tokens import GrantAnswer

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def oauth_token() -> Response:
    """POST /authen/v2/oauth/token, for a device code or a refresh token. JSON or a form; what it
    answers stands at the top level of the body, not under `data`."""
    body = _fields()
    check_pace("open_apis.oauth_token")
    _check_app(body)
    issued = _issued(body)
    return json_response(_token_body(issued))


def connection_endpoint() -> Response:
    """POST /callback/ws/endpoint. The app sends its secret, and no token."""
    body = json_body()
    connections = current_platform().connections
    return json_response(connections.endpoint(body.get("AppID"), body.get("AppSecret")))


def user_info() -> dict[str, Any]:
    """GET /authen/v1/user_info"""
    platform = current_platform()
    person = platform.world.people[g.user.open_id]
    tenant = platform.world.tenant_of(person)
    shape = {
        "name": person.name,
        "en_name": person.en_name or person.name,
        "avatar_url": AVATAR,
        "avatar_thumb": AVATAR,
        "avatar_middle": AVATAR,
        "avatar_big": AVATAR,
        "open_id": person.open_id,
        "union_id": person.union_id,
        "tenant_key": tenant,
    }
    if "contact:user.employee_id:readonly" in g.user.scopes:
        shape["user_id"] = person.user_id
    return shape


def _fields() -> dict[str, Any]:
    if request.mimetype == "application/x-www-form-urlencoded":
        return request.form.to_dict()
    return json_body()


def _check_app(body: dict[str, Any]) -> None:
    """Raises GrantRefused unless the app names itself, in one way only."""
    config = current_platform().config
    if request.authorization is not None:
        raise GrantRefused("invalid_request", 20070)
    if not _text(body, "client_id") or not _text(body, "client_secret"):
        raise GrantRefused("invalid_request", 20063)
    if body["client_id"] != config.app_id:
        raise GrantRefused("invalid_client", 20048)
    if body["client_secret"] != config.app_secret:
        raise GrantRefused("invalid_client", 20002)


def _issued(body: dict[str, Any]) -> GrantAnswer:
    tokens, kind = current_platform().user_tokens, _text(body, "grant_type")
    if kind == DEVICE_GRANT:
        return tokens.poll(_required(body, "device_code"))
    if kind == "refresh_token":
        return tokens.refreshed(_required(body, "refresh_token"), _text(body, "scope"))
    raise GrantRefused("unsupported_grant_type", 20036)


def _token_body(issued: GrantAnswer) -> dict[str, Any]:
    body: dict[str, Any] = {
        "code": 0,
        "access_token": issued.access_token,
        "expires_in": issued.expires_in,
        "scope": " ".join(issued.scopes),
        "token_type": "Bearer",
    }
    if issued.refresh_token:
        body["refresh_token"] = issued.refresh_token
        body["refresh_token_expires_in"] = issued.refresh_expires_in
    return body


def _required(body: dict[str, Any], name: str) -> str:
    if not (text := _text(body, name)):
        raise GrantRefused("invalid_request", 20001)
    return text


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    return value if isinstance(value, str) else ""
