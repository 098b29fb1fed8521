"""The console as an application of its own: who may in, the rules of every answer, its pages."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence

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
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.wrappers import Response as Answer

from bot.operations.console import (
    audit,
    doctor,
    feedback,
    imports,
    memory_pages,
    overview,
    people,
    queue,
    receipts,
    turns,
    usage,
)
from bot.operations.console.database import ConsoleDatabase
from bot.operations.console.origins import refusal
from bot.operations.console.page_context import Desk, draw
from bot.operations.console.sessions import COOKIE, LONGEST_S, Sessions, csrf_token
from bot.operations.console.texts import CATALOGUE
from bot.operations.doctor.result import Check
from bot.queue.inbox import QueueUnavailable
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


def create_console(
    settings: Settings, url: str, ready: Callable[[], Sequence[Check]] = list
) -> Flask:
    """The application for every path below /console. `ready`: what `/readyz` finds."""
    app = Flask(__name__, static_folder="static", static_url_path="/console/static")
    app.config["MAX_CONTENT_LENGTH"] = _MOST_BYTES
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    jobs = QueueOperations(url)
    desk = Desk(settings, url, ConsoleDatabase(url), Sessions(url), jobs, ready)
    app.jinja_env.globals.update(
        moment=desk.moment, clock=desk.clock, pages=_PAGES, known=CATALOGUE.has
    )
    app.jinja_env.globals["zone_name"] = settings.zone.key
    _guard(app, desk)
    _sign_in(app, desk)
    _preferences(app)
    _cards(app)
    _failures(app)
    for page in (
        overview,
        turns,
        people,
        memory_pages,
        feedback,
        imports,
        queue,
        usage,
        doctor,
        receipts,
        audit,
    ):
        page.add(app, desk)
    return app


def _guard(app: Flask, desk: Desk) -> None:
    def check() -> Answer | None:
        reason = refusal(
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
        session = request.cookies.get(COOKIE, "")
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
    answer = make_response(draw("signed_out.html"), 401)
    if request.headers.get("HX-Request"):
        answer.headers["HX-Refresh"] = "true"
    return answer


def _sign_in(app: Flask, desk: Desk) -> None:
    def enter() -> Answer:
        if request.method == "HEAD":
            abort(405)  # who only looks where a link leads does not use it up
        session = desk.sessions.enter(request.args.get("key", ""))
        if session is None or session[0] not in desk.settings.admins:
            return make_response(draw("signed_out.html", used=True), 401)
        log.info("console.signed_in", admin=session[0])
        answer = redirect("/console/", 303)
        answer.set_cookie(
            COOKIE,
            session[1],
            max_age=LONGEST_S,
            path="/console",
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return answer

    def leave() -> Answer:
        desk.sessions.leave(request.cookies.get(COOKIE, ""))
        answer = redirect("/console/", 303)
        answer.delete_cookie(
            COOKIE, path="/console", secure=request.is_secure, httponly=True, samesite="Strict"
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


def _failures(app: Flask) -> None:
    def away(exc: Exception) -> tuple[str, int]:
        cause = exc.__cause__ or exc
        log.warning("console.database", error=type(cause).__name__)
        return draw("trouble.html", kind="away", detail=type(cause).__name__), 503

    def refused(exc: HTTPException) -> tuple[str, int]:
        kind = "missing" if exc.code == 404 else "refused"
        return draw("trouble.html", kind=kind, detail=""), exc.code or 500

    app.register_error_handler(psycopg.Error, away)
    app.register_error_handler(psycopg.DataError, lambda exc: refused(BadRequest()))
    app.register_error_handler(QueueUnavailable, away)
    app.register_error_handler(StoreUnavailable, away)
    app.register_error_handler(HTTPException, refused)
