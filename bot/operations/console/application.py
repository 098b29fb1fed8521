"""Builds the console: who may enter, the rules of every answer, and its pages.

It is reached over loopback, from elsewhere through a tunnel. A page of another site must not
use it, neither by a name of its own that leads here (the Host is wrong) nor across origins."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network

import psycopg
import structlog
from flask import (
    Flask,
    Response,
    abort,
    g,
    make_response,
    redirect,
    request,
    send_from_directory,
)
from werkzeug.datastructures import Headers
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.wrappers import Response as Answer

from bot.operations.console import list_pages, memory_pages, overview, turns
from bot.operations.console.context import (
    CATALOGUE,
    LONGEST_S,
    SESSION_COOKIE,
    ConsoleContext,
    ConsoleDatabase,
    Sessions,
    csrf_token,
    draw_page,
)
from bot.operations.doctor.health import trouble_check
from bot.operations.doctor.result import Check
from bot.queue.looking import DatabaseTrouble, explain
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from bot.text.languages import Sentence
from memory.errors import StoreUnavailable
from sandbox.page import STATIC

log = structlog.get_logger()

# path below /console/, and the key of its name
_PAGES = (
    ("", "now"),
    ("turns", "turns"),
    ("people", "people"),
    ("memory", "memory"),
    ("feedback", "feedback"),
    ("imports", "imports"),
    ("queue", "queue"),
    ("usage", "usage"),
    ("setup", "setup"),
    ("receipts", "receipts"),
    ("audit", "audit"),
)
_STATIC = "/console/static/"
_CARDS = "/console/cards/"
_CARD_PARTS = frozenset(
    {"card.js", "redraw.js", "markdown.js", "dom.js", "labels.js", "card.css", "colours.css"}
)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_OWN_PAGE = re.compile(r"/console/[!-\[\]-~]*")  # visible ASCII without a backslash
_MOST_BYTES = 256 * 1024
_LANGUAGES, _THEMES = ("en", "zh"), ("light", "dark", "auto")
_YEAR_S = 365 * 24 * 3600

_HOST_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OWN_SITE = frozenset({"", "same-origin", "none"})
_FORWARDING_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


def create_console(
    settings: Settings, url: str, ready: Callable[[], Sequence[Check]] = list
) -> Flask:
    """The application for every path below /console. `ready`: what `/readyz` finds."""
    app = Flask(__name__, static_folder="static", static_url_path="/console/static")
    app.config["MAX_CONTENT_LENGTH"] = _MOST_BYTES
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    jobs = QueueOperations(url)
    desk = ConsoleContext(settings, url, ConsoleDatabase(url), Sessions(url), jobs, ready)
    app.jinja_env.globals.update(
        moment=desk.moment,
        time_tag=desk.time_tag,
        day=desk.day,
        clock=desk.clock,
        pages=_PAGES,
        known=CATALOGUE.has,
    )
    app.jinja_env.globals["zone_name"] = settings.zone.key
    _guard(app, desk)
    _sign_in(app, desk)
    _preferences(app)
    _cards(app)
    _failures(app, url)
    for add_pages in (
        overview.add_overview_pages,
        turns.add_turn_pages,
        list_pages.add_people_page,
        memory_pages.add_memory_pages,
        list_pages.add_feedback_page,
        list_pages.add_import_pages,
        list_pages.add_queue_pages,
        overview.add_usage_page,
        overview.add_setup_pages,
        list_pages.add_receipt_pages,
        list_pages.add_audit_page,
    ):
        add_pages(app, desk)
    return app


def _guard(app: Flask, desk: ConsoleContext) -> None:
    def check() -> Answer | None:
        reason = request_refusal(
            request.headers,
            scheme=request.scheme,
            method=request.method,
            address=request.remote_addr or "",
            networks=desk.settings.near_networks,
        )
        if reason:
            return _plain(reason, 403)
        if request.path.startswith((_STATIC, _CARDS)) or request.path == "/console/enter":
            return None
        session = request.cookies.get(SESSION_COOKIE, "")
        active = "HX-Request" not in request.headers and not request.path.endswith(".json")
        admin = desk.sessions.admin(session, active=active) if session else None
        if admin not in desk.settings.admins:
            return _signed_out()
        g.admin, g.csrf = admin, csrf_token(session)
        if request.method not in ("GET", "HEAD") and not _has_token(g.csrf):
            return _plain(CATALOGUE.both("other_session"), 403)
        if any("\0" in text for text in request.values.values()):
            abort(400)  # Postgres keeps no such text
        return None

    def protect(answer: Response) -> Response:
        answer.headers.update(_HEADERS)
        if not request.path.startswith((_STATIC, _CARDS)):
            answer.headers["Cache-Control"] = "no-store"
            answer.vary.update(("Cookie", "Accept-Language"))
        return answer

    app.before_request(check)
    app.after_request(protect)


def _has_token(session_token: str) -> bool:
    request_token = request.headers.get("X-CSRF-Token") or request.form.get("csrf", "")
    return hmac.compare_digest(request_token.encode(), session_token.encode())


def _plain(reason: Sentence, status: int) -> Answer:
    body = f"{reason.en}\n{reason.zh}\n"
    return Response(body, status=status, content_type="text/plain; charset=utf-8")


def _signed_out() -> Answer:
    answer = make_response(draw_page("signed_out.html"), 401)
    if request.headers.get("HX-Request"):
        answer.headers["HX-Refresh"] = "true"
    return answer


def _sign_in(app: Flask, desk: ConsoleContext) -> None:
    def enter() -> Answer:
        if request.method == "HEAD":
            abort(405)  # who only looks where a link leads does not use it up
        session = desk.sessions.enter(request.args.get("key", ""))
        if session is None or session[0] not in desk.settings.admins:
            return make_response(draw_page("signed_out.html", used=True), 401)
        log.info("console.signed_in", admin=session[0])
        answer = redirect("/console/", 303)
        answer.set_cookie(
            SESSION_COOKIE,
            session[1],
            max_age=LONGEST_S,
            path="/console",
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return answer

    def leave() -> Answer:
        desk.sessions.leave(request.cookies.get(SESSION_COOKIE, ""))
        answer = redirect("/console/", 303)
        answer.delete_cookie(
            SESSION_COOKIE,
            path="/console",
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return answer

    app.add_url_rule("/console/enter", "enter", enter)
    app.add_url_rule("/console/leave", "leave", leave, methods=["POST"])
    app.add_url_rule("/console", "door", lambda: redirect("/console/", 308))


def _preferences(app: Flask) -> None:
    def prefer() -> Answer:
        answer = redirect(_own_page(request.form.get("page", "")), 303)
        for name, allowed_values in (("lang", _LANGUAGES), ("theme", _THEMES)):
            value = request.form.get(name)
            if value and value in allowed_values:
                answer.set_cookie(
                    f"console_{name}",
                    value,
                    max_age=_YEAR_S,
                    path="/console",
                    secure=request.is_secure,
                    httponly=True,
                    samesite="Strict",
                )
        return answer

    app.add_url_rule("/console/prefer", "prefer", prefer, methods=["POST"])


def _cards(app: Flask) -> None:
    """The code that draws cards, shared with the sandbox's page."""

    def part(name: str) -> Answer:
        return send_from_directory(STATIC, name) if name in _CARD_PARTS else abort(404)

    app.add_url_rule(f"{_CARDS}<name>", "cards", part)


def _own_page(path: str) -> str:
    """A path of the console, whatever a form says."""
    is_own = _OWN_PAGE.fullmatch(path) and ".." not in path
    return path if is_own else "/console/"


def _failures(app: Flask, url: str) -> None:
    def away(exc: Exception) -> tuple[str, int]:
        cause = exc.__cause__ or exc
        log.warning("console.database", error=type(cause).__name__)
        trouble = explain(url, exc) if isinstance(exc, psycopg.Error) else exc
        check = trouble_check(trouble) if isinstance(trouble, DatabaseTrouble) else None
        return draw_page("trouble.html", kind="away", check=check), 503

    def refuse(exc: HTTPException) -> tuple[str, int]:
        kind = "missing" if exc.code == 404 else "refused"
        return draw_page("trouble.html", kind=kind), exc.code or 500

    app.register_error_handler(psycopg.Error, away)
    app.register_error_handler(psycopg.DataError, lambda exc: refuse(BadRequest()))
    app.register_error_handler(DatabaseTrouble, away)
    app.register_error_handler(StoreUnavailable, away)
    app.register_error_handler(HTTPException, refuse)


def request_refusal(
    headers: Headers,
    *,
    scheme: str,
    method: str,
    address: str,
    networks: Sequence[IPv4Network | IPv6Network] = (),
) -> Sentence | None:
    """Why a request is not for us; None when it is. `address`: who is connected; `networks`: from
    where the console is used beside this machine, as a published port of a container is."""
    host = headers.get("Host", "").lower()
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    if (
        name not in _HOST_NAMES
        or any(one in headers for one in _FORWARDING_HEADERS)
        or not _is_near_address(address, networks)
    ):
        return CATALOGUE.both("not_here")
    if headers.get("Origin", f"{scheme}://{host}").lower() != f"{scheme}://{host}":
        return CATALOGUE.both("other_page")
    # a link to a page may stand anywhere; the cookie does not come along with it
    is_navigation = method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
    if headers.get("Sec-Fetch-Site", "") not in _OWN_SITE and not is_navigation:
        return CATALOGUE.both("other_page")
    return None


def _is_near_address(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        parsed_address = ipaddress.ip_address(address)
    except ValueError:
        return False
    parsed_address = getattr(parsed_address, "ipv4_mapped", None) or parsed_address
    return parsed_address.is_loopback or any(parsed_address in network for network in networks)
