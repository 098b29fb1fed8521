"""The stand-in platform as one Flask application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask, Request, Response, request
from werkzeug.routing import Rule

from sandbox.api import open_apis
from sandbox.config import SandboxConfig
from sandbox.control import control_api
from sandbox.extras import Extras
from sandbox.grants import device_grants
from sandbox.http import json_response
from sandbox.page import page
from sandbox.platform import SandboxPlatform
from sandbox.registration import accounts
from sandbox.views.authentication import connection_endpoint
from sandbox.world.push import Post


def create_sandbox(
    config: SandboxConfig,
    *,
    inspector: Callable[[str], dict[str, Any]] | None = None,
    extras: Callable[[], Extras] = Extras,
    post: Post | None = None,
) -> Flask:
    """Everything under `/`, `/sandbox/`, `/oauth/`, `/callback/` and `/open-apis/`; nothing
    else is answered.

    State is in memory and belongs to this application: serve it from one process with threads
    (an open page occupies one). `app.extensions["sandbox"]` is the Platform; its `close()` ends
    the live streams and the pushing threads.

    Args:
        inspector: given a chat id, returns `{"sections": [{"title", "rows" | "text"}]}`;
            titles and cells are one text, or `{"en", "zh"}`.
        extras: what the app brings along for the page, such as its commands; called when a page
            opens.
        post: how events reach the app; HTTP unless given.
    """
    app = Flask("sandbox", static_folder=None)
    app.url_rule_class = MatchedRule
    app.extensions["sandbox"] = SandboxPlatform(config, post=post)
    keep_to_own_origin(app)
    app.register_blueprint(open_apis())
    app.register_blueprint(accounts())
    app.register_blueprint(device_grants())
    app.add_url_rule("/callback/ws/endpoint", view_func=connection_endpoint, methods=["POST"])
    app.register_blueprint(control_api(inspector, extras))
    app.register_blueprint(page())
    return app


class MatchedRule(Rule):
    """A rule that is only matched. Its functions that build a URL are compiled if somebody asks
    for one: for all rules of the sandbox this would take most of its start."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            return compile_builder(append_unknown)(rule, **values)

        compile_builder = super()._compile_builder
        return build


PAGES = frozenset({"/", "/oauth/v1/device/verify"})
_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OWN_SITE = frozenset({"", "same-origin", "none"})


def keep_to_own_origin(app: Flask) -> None:
    """Refuses with 403 what another page sends, before anything else looks at it, and keeps every
    answer out of frames.

    The sandbox is reached without any password, so a web page that somebody has open beside it
    must not use it: neither by a name of its own that leads to 127.0.0.1 (DNS rebinding: the Host
    is wrong), nor by a request across origins (Origin, Sec-Fetch-Site). Programs send neither.
    """

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
