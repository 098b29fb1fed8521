"""One HTTP exchange of a check: whatever comes back is an answer, and silence has a kind.

Feishu and the models say what is wrong in the body of a 4xx, so no status is an error here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from bot.languages import Sentence

TIMEOUT_S = 5.0

_WHY = {
    "timeout": Sentence("does not answer in time", "没有及时响应"),
    "name": Sentence("is not found: check its name", "找不到：请检查域名"),
    "tls": Sentence("has no valid TLS certificate", "没有有效的 TLS 证书"),
    "away": Sentence("cannot be reached", "无法连接"),
}


class Silent(Exception):
    """No answer came; `sentence` says of which host and why, without a full stop."""

    def __init__(self, url: str, kind: str) -> None:
        host, why = urlsplit(url).netloc, _WHY[kind]
        self.sentence = Sentence(f"{host} {why.en}", f"{host} {why.zh}")
        super().__init__(self.sentence.en)


@dataclass(frozen=True, slots=True)
class Answer:
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
        told = error.get("message") if isinstance(error, dict) else error
        return f"{told or ''} {self.body.get('msg') or ''} {self.body.get('code') or ''}"


def ask(
    method: str,
    url: str,
    *,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """The answer, whatever its status. Raises `Silent`."""
    started = time.perf_counter()
    try:
        answer = requests.request(
            method, url, json=body, headers=dict(headers or {}), timeout=timeout_s
        )
    except requests.Timeout as exc:
        raise Silent(url, "timeout") from exc
    except requests.exceptions.SSLError as exc:
        raise Silent(url, "tls") from exc
    except requests.ConnectionError as exc:
        raise Silent(url, "name" if _is_unknown_name(exc) else "away") from exc
    except (requests.RequestException, ValueError) as exc:
        raise Silent(url, "away") from exc
    seconds = time.perf_counter() - started
    raw = answer.content
    return Answer(answer.status_code, _object(raw), answer.headers, seconds, raw)


def _is_unknown_name(exc: requests.ConnectionError) -> bool:
    return "NameResolution" in repr(exc) or "getaddrinfo" in repr(exc)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
