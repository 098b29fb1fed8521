"""One HTTP exchange of a check: whatever comes back is an answer, and silence has a kind.

Feishu and the models say what is wrong in the body of a 4xx, so no status is an error here. Nor is
a redirection followed: a key is meant for who was asked. Web processes ask at their start and stay
for good, so it goes without a client library of its own.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from bot.text.languages import Sentence
from memory.certificates import trusted_certificates

TIMEOUT_S = 5.0

_OURS = {"User-Agent": "feishu-memory-bot"}  # some gateways refuse urllib's own

_WHY = {
    "timeout": Sentence("does not answer in time", "没有及时响应"),
    "name": Sentence("is not found: check its name", "找不到：请检查域名"),
    "tls": Sentence("has no valid TLS certificate", "没有有效的 TLS 证书"),
    "away": Sentence("cannot be reached", "无法连接"),
}


class NoHttpAnswer(Exception):
    """No answer came; `sentence` says of which host and why, without a full stop."""

    def __init__(self, url: str, kind: str) -> None:
        host, why = urlsplit(url).netloc, _WHY[kind]
        self.sentence = Sentence(f"{host} {why.en}", f"{host} {why.zh}")
        super().__init__(self.sentence.en)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`body` is the JSON object in `raw`, {} when that is something else; `seconds` it took."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    raw: bytes = b""

    @property
    def code(self) -> int | None:
        """Feishu's code; None when the answer is not Feishu's."""
        code = self.body.get("code")
        return code if isinstance(code, int) else None

    @property
    def message(self) -> str:
        """What the answer says of an error, for recognising it; never shown."""
        error = self.body.get("error")
        message_field = error.get("message") if isinstance(error, dict) else error
        return f"{message_field or ''} {self.body.get('msg') or ''} {self.body.get('code') or ''}"


def http_request(
    method: str,
    url: str,
    *,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> HttpAnswer:
    """The answer, whatever its status. Raises `Silent`."""
    start_s = time.perf_counter()
    try:
        with _open_request(_request(method, url, body, headers or {}), timeout_s) as answer:
            raw = answer.read()
    except (OSError, HTTPException, ValueError) as exc:
        raise NoHttpAnswer(url, _kind(exc)) from exc
    seconds = time.perf_counter() - start_s
    response_headers = cast("Mapping[str, str]", answer.headers)
    return HttpAnswer(answer.getcode() or 0, _object(raw), response_headers, seconds, raw)


def _request(method: str, url: str, body: object, headers: Mapping[str, str]) -> Request:
    data = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if data else {}
    return Request(url, data, {**_OURS, **kind, **headers}, method=method)  # noqa: S310


def _open_request(request: Request, timeout_s: float) -> HTTPResponse | HTTPError:
    """The answer as it begins, whatever its status."""
    secure = [HTTPSHandler(context=trusted_certificates())] if request.type == "https" else []
    try:
        opener = build_opener(_Stays, *secure)
        return cast("HTTPResponse", opener.open(request, timeout=timeout_s))
    except HTTPError as refusal:
        return refusal


class _Stays(HTTPRedirectHandler):
    """Follows nobody elsewhere: urllib would take the keys along."""

    def redirect_request(self, *_: object) -> None:
        return None


def _kind(exc: Exception) -> str:
    """Which of `_WHY` it is."""
    reason = exc.reason if isinstance(exc, URLError) else exc
    kinds = {TimeoutError: "timeout", socket.gaierror: "name", ssl.SSLError: "tls"}
    return next((kind for type_, kind in kinds.items() if isinstance(reason, type_)), "away")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
