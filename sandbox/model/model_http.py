"""The few pages of HTTP/1.1 that the stand-in model needs: keep-alive, lengths and chunks.

Written on asyncio streams because it runs beside the bot in benchmarks and must cost little CPU.
Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl

MAX_BODY = 32 * 1024 * 1024
LAST_CHUNK = b"0\r\n\r\n"

_JSON = "application/json"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Closed(Exception):
    """The connection ends here."""


class HttpError(Exception):
    """The request gets an error status; the message goes into the body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ModelHttpRequest:
    """One request, its query decoded and its body complete."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    keep_alive: bool


async def read_request(reader: asyncio.StreamReader) -> ModelHttpRequest:
    """The next request of a connection.

    Raises Closed at its end, and HttpError after which the connection cannot go on.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, version, headers = _parse_head(head)
        body = await reader.readexactly(_length(headers))
    except asyncio.IncompleteReadError as error:
        raise Closed from error
    except asyncio.LimitOverrunError as error:
        raise HttpError(431, "the headers are too long") from error
    path, _, query = target.partition("?")
    default = "keep-alive" if version == "HTTP/1.1" else "close"
    keep_alive = headers.get("connection", default).lower() != "close"
    return ModelHttpRequest(method, path, dict(parse_qsl(query)), body, keep_alive)


def response_head(
    status: int, length: int | None, content_type: str = _JSON, headers: Mapping[str, str] = {}
) -> bytes:
    """Status line and headers; a `length` of None announces chunks."""
    phrase = _PHRASES.get(status, "Scripted")
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\n{size}\r\n{more}\r\n"
    ).encode("latin-1")


def chunk(part: bytes) -> bytes:
    """`part`, which is not empty, as one chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(part), part)


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise HttpError(400, "the request line is not METHOD TARGET VERSION")
    pairs = (line.partition(":") for line in lines)
    return words[0], words[1], words[2], {name.lower(): value.strip() for name, _, value in pairs}


def _length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise HttpError(411, "send the body with a Content-Length")
    text = headers.get("content-length", "0")
    if not text.isdecimal():
        raise HttpError(400, "Content-Length is not a number")
    if int(text) > MAX_BODY:
        raise HttpError(413, f"the body is longer than {MAX_BODY} bytes")
    return int(text)
