"""People let the app act as themselves: OAuth's device grant, refreshing, and who approved.

Sources: RFC 8628; Feishu, “Refresh user_access_token” and “Get user information”; the device grant
as larksuite/cli calls it. Nothing here is repeated: a refresh token works once, and so does a code.
Neither tokens nor codes are in any exception.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from bot.feishu.errors import Unintelligible, Unreachable, classify
from bot.feishu.fields import as_dict, as_text
from bot.feishu.models import required_text
from bot.feishu.transport import ApiRequest, ApiResponse, Transport
from memory.tables.user_tokens import TokenPair

# pending, slow_down: ask again; denied, expired: they said no, or nothing. later: Feishu is in
# trouble, and used nothing up. app: it is the app that may not. refused: any other reason.
RefusalKind = Literal["pending", "slow_down", "denied", "expired", "later", "app", "refused"]

_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_ACCOUNTS, _OPEN = "accounts.", "open."
_TOKEN = "/open-apis/authen/v2/oauth/token"  # noqa: S105 - a path
_KINDS: dict[str, RefusalKind] = {
    "authorization_pending": "pending",
    "slow_down": "slow_down",
    "access_denied": "denied",
    "expired_token": "expired",
}
_LATER = frozenset({20050, 20072, 99991400})
_OF_THE_APP = frozenset({20001, 20002, 20009, 20036, 20048, 20063, 20069, 20070, 20074})
_EXPIRED = 20037
_LIFE_S, _INTERVAL_S, _ACCESS_S = 240, 5, 7200  # where Feishu does not say


class NotGranted(Exception):
    """Feishu issues no token; `kind` says what that means, `code` is Feishu's."""

    def __init__(self, kind: RefusalKind, code: int, error: str) -> None:
        super().__init__(f"Feishu issues no token: {kind} ({code} {error or 'no reason'})")
        self.kind: RefusalKind = kind
        self.code = code


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """What a person opens to approve, and how often and how long to ask what came of it."""

    device_code: str = field(repr=False)
    link: str = field(repr=False)
    life_s: int
    interval_s: int


def accounts_origin(domain: str) -> str:
    """Where people sign in, for the origin of an API: `accounts.` in place of `open.`; any other
    origin, such as the sandbox's, is both."""
    parts = urlsplit(domain)
    if not parts.netloc.startswith(_OPEN):
        return domain
    return f"{parts.scheme}://{_ACCOUNTS}{parts.netloc.removeprefix(_OPEN)}"


class UserAuthorization:
    """Calls of one app at one domain, for one event loop; `close` when done. Methods raise
    `Unreachable`: with `maybe_done` nobody knows whether a token was issued."""

    def __init__(self, domain: str, app_id: str, app_secret: str) -> None:
        self._app = {"client_id": app_id, "client_secret": app_secret}
        self._basic = base64.b64encode(f"{app_id}:{app_secret}".encode()).decode()
        self._accounts = Transport(accounts_origin(domain))
        self._open = Transport(domain)

    async def close(self) -> None:
        """Closes the connections."""
        await self._accounts.close()
        await self._open.close()

    async def begin(self, scopes: Sequence[str]) -> DeviceLink:
        """A link with which one person can grant these scopes. Raises `NotGranted`."""
        request = ApiRequest(
            "POST",
            "/oauth/v1/device_authorization",
            fields={"client_id": self._app["client_id"], "scope": " ".join(scopes)},
            headers={"Authorization": f"Basic {self._basic}"},
        )
        answer = _answer(await self._accounts.send(request))
        link = as_text(answer.get("verification_uri_complete"))
        return DeviceLink(
            required_text(answer, "device_code"),
            link or required_text(answer, "verification_uri"),
            _seconds(answer, "expires_in", _LIFE_S),
            _seconds(answer, "interval", _INTERVAL_S),
        )

    async def poll(self, device_code: str) -> TokenPair:
        """What the person granted, once. Raises `NotGranted`."""
        return await self._issued({"grant_type": _DEVICE_GRANT, "device_code": device_code})

    async def refresh(self, refresh_token: str) -> TokenPair:
        """New tokens for a refresh token, which is used up by this. Raises `NotGranted`."""
        return await self._issued({"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def who(self, access_token: str) -> str:
        """The open_id of the person for whom the token speaks. Raises `FeishuFailure`."""
        request = ApiRequest("GET", "/open-apis/authen/v1/user_info")
        response = await self._open.send(request, access_token)
        if failure := classify(response.status, response.headers, response.body):
            raise failure
        return required_text(as_dict(_json(response).get("data")), "open_id")

    async def _issued(self, grant: dict[str, str]) -> TokenPair:
        request = ApiRequest("POST", _TOKEN, body={**grant, **self._app})
        answer = _answer(await self._open.send(request))
        refresh = as_text(answer.get("refresh_token"))
        return TokenPair(
            required_text(answer, "access_token"),
            _seconds(answer, "expires_in", _ACCESS_S),
            refresh,
            _seconds(answer, "refresh_token_expires_in", _ACCESS_S) if refresh else 0,
            tuple(as_text(answer.get("scope")).split()),
        )


def _answer(response: ApiResponse) -> dict[str, Any]:
    """The answer, if it is no refusal. Raises `NotGranted` and `Unreachable`."""
    answer = _json(response)
    code, error = answer.get("code", 0), as_text(answer.get("error"))
    if 200 <= response.status < 300 and not code and not error:
        return answer
    code = code if isinstance(code, int) else 0
    if not code and not error:
        raise Unreachable(f"HTTP {response.status} without a reason")
    raise NotGranted(_kind(response.status, code, error), code, error)


def _kind(status: int, code: int, error: str) -> RefusalKind:
    if kind := _KINDS.get(error):
        return kind
    if code in _LATER or status == 429:
        return "later"
    if code == _EXPIRED:
        return "expired"
    return "app" if code in _OF_THE_APP else "refused"


def _json(response: ApiResponse) -> dict[str, Any]:
    try:
        answer = json.loads(response.body)
    except ValueError:
        raise Unintelligible(f"HTTP {response.status} without JSON") from None
    return as_dict(answer)


def _seconds(answer: dict[str, Any], name: str, usual: int) -> int:
    value = answer.get(name)
    return value if isinstance(value, int) and value > 0 else usual
