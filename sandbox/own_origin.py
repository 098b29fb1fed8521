"""The stand-in platform answers to its own page and to programs of this machine, to no other page.

It is reached without any password. So a web page that somebody has open beside it must not use it:
neither by a name of its own that leads to 127.0.0.1 (DNS rebinding: the Host is wrong), nor by a
request across origins (Origin, Sec-Fetch-Site). Programs send neither of the two.
"""

from __future__ import annotations

from flask import Flask, Request, Response, request

from sandbox.http import json_response

PAGES = frozenset({"/", "/oauth/v1/device/verify"})
_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OWN_SITE = frozenset({"", "same-origin", "none"})


def keep_to_own_origin(app: Flask) -> None:
    """Refuses with 403 what another page sends, before anything else looks at it, and keeps every
    answer out of frames."""

    def refuse() -> Response | None:
        reason = foreign(request)
        return json_response({"error": reason}, 403) if reason else None

    app.before_request(refuse)
    app.after_request(_in_no_frame)


def _in_no_frame(answer: Response) -> Response:
    """A page that shows ours in a frame could lead people's clicks."""
    answer.headers["X-Frame-Options"] = "DENY"
    return answer


def foreign(asking: Request) -> str:
    """Why this request is not for us; "" when it is."""
    host = asking.headers.get("Host", "").lower()
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    if name not in _NAMES:
        return "the sandbox is for this machine: open it as http://127.0.0.1 or http://localhost"
    if asking.headers.get("Origin", f"http://{host}").lower() != f"http://{host}":
        return "another page may not use the sandbox"
    site = asking.headers.get("Sec-Fetch-Site", "")
    opened = asking.method == "GET" and asking.path in PAGES  # a link to the page itself
    if site not in _OWN_SITE and not opened:
        return "another page may not use the sandbox"
    return ""
