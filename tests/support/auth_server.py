"""Supabase's gateway with the Auth admin API, as strict as the real one about what it is sent.

Shapes of supabase/auth, `internal/api/admin.go` and `errors.go`. Everything under `/rest/v1` goes
on to another server, so that one address serves both, as a project's does.
"""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SECRET_KEY = "sb_secret_for_these_tests_only"
LEGACY_KEY = "eyJhbGciOiJIUzI1NiJ9.legacy.service-role"
_VERSION = "2024-01-01"
_USERS = "/auth/v1/admin/users"
_NOW = "2026-03-03T03:03:03Z"
_KNOWN = {"id", "email", "email_confirm", "app_metadata"}
_PASSED_ON = ("apikey", "authorization", "content-type", "accept", "content-profile", "prefer")

Answer = tuple[int, dict[str, Any]]


@dataclass
class AuthServer:
    """Users by id, and what shall go wrong. `trouble`: answers given in place of the next ones."""

    rest_url: str = ""
    url: str = ""
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    trouble: list[Answer] = field(default_factory=list)
    gives_own_ids: bool = False
    # two creations that have both seen that there is no such user yet
    creations_meet: threading.Barrier | None = None
    # set: requests are answered
    answering: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, **fields: Any) -> dict[str, Any]:
        """A user as another app could have made it."""
        user = {
            "id": str(uuid.uuid4()),
            "aud": "authenticated",
            "role": "authenticated",
            "email": f"{uuid.uuid4().hex}@example.org",
            "phone": "",
            "app_metadata": {"provider": "email", "providers": ["email"]},
            "user_metadata": {},
            "identities": [],
            "created_at": _NOW,
            "updated_at": _NOW,
            "is_anonymous": False,
            **fields,
        }
        with self._changed:
            self.users[user["id"]] = user
            self._changed.notify_all()
        return user

    def wait_for_user(self, user_id: str) -> dict[str, Any]:
        """The user of that id, as soon as there is one; within a minute."""
        with self._changed:
            assert self._changed.wait_for(lambda: user_id in self.users, 60)
        return self.users[user_id]

    def create(self, given: dict[str, Any]) -> Answer:
        if unknown := given.keys() - _KNOWN:
            return 400, _error("validation_failed", f"not among our fields: {unknown}")
        if not given.get("email"):
            return 400, _error("validation_failed", "Cannot create a user without an email")
        if any(user["email"] == given["email"].lower() for user in self.users.values()):
            return 422, _error("email_exists", "A user with this email address has already been")
        if self.creations_meet:
            self.creations_meet.wait(60)
        wanted = str(uuid.uuid4()) if self.gives_own_ids else _uuid(given.get("id", ""))
        if wanted is None:
            return 400, _error("validation_failed", "ID must conform to the uuid v4 format")
        with self._changed:
            if wanted in self.users or given["email"] in {u["email"] for u in self.users.values()}:
                return 500, _error("unexpected_failure", "Database error creating new user")
            metadata = {"provider": "email", "providers": ["email"], **given["app_metadata"]}
            confirmed = {"email_confirmed_at": _NOW} if given.get("email_confirm") else {}
            return 200, self.add(
                id=wanted, email=given["email"].lower(), app_metadata=metadata, **confirmed
            )

    def one(self, method: str, user_id: str) -> Answer:
        if _uuid(user_id) is None:
            return 404, _error("validation_failed", "user_id must be an UUID")
        if user_id not in self.users:
            return 404, _error("user_not_found", "User not found")
        if method == "DELETE":
            del self.users[user_id]
            return 200, {}
        return 200, self.users[user_id]


@contextmanager
def auth_server(rest_url: str = "") -> Iterator[AuthServer]:
    """A running server on a port of its own; `rest_url`: who answers `/rest/v1`."""
    state = AuthServer(rest_url)
    state.answering.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        state.answering.set()
        server.shutdown()
        thread.join(10)
        server.server_close()


def _handler(state: AuthServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:  # the client waited no longer
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.startswith("/rest/v1"):
                self.reply(*_pass_on(state.rest_url, self.command, self.path, self.headers, body))
                return
            state.requests.append(f"{self.command} {self.path}")
            state.answering.wait(10)
            status, content = self.refusal() or self.outcome(body)
            self.reply(status, json.dumps(content).encode())

        def refusal(self) -> Answer | None:
            """What the gateway, and Auth before it looks at the request, would say."""
            if state.trouble:
                return state.trouble.pop(0)
            key, bearer = self.headers.get("apikey"), self.headers.get("Authorization")
            if key not in (SECRET_KEY, LEGACY_KEY):
                return 401, {"message": "Invalid API key"}
            # The gateway puts a token of its own in place of an opaque key, and only of that.
            if bearer != (f"Bearer {LEGACY_KEY}" if key == LEGACY_KEY else None):
                return 403, _error("bad_jwt", "invalid JWT")
            if self.headers.get("X-Supabase-Api-Version") != _VERSION:
                return 400, {"code": 400, "error_code": "validation_failed", "msg": "old version"}
            return None

        def outcome(self, body: bytes) -> Answer:
            if self.command == "POST" and self.path == _USERS:
                if not self.headers["Content-Type"].startswith("application/json"):
                    return 400, _error("bad_json", "Could not parse request body as JSON")
                return state.create(json.loads(body))
            if self.command in ("GET", "DELETE") and self.path.startswith(f"{_USERS}/"):
                return state.one(self.command, self.path.removeprefix(f"{_USERS}/"))
            return 404, {"message": "no Route matched with those values"}

        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Supabase-Api-Version", _VERSION)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    for method in ("GET", "POST", "DELETE", "PUT", "PATCH"):
        setattr(Handler, f"do_{method}", Handler.answer)
    return Handler


def _pass_on(url: str, method: str, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        kept = {name: headers[name] for name in _PASSED_ON if name in headers}
        connection.request(method, path, body, kept)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _error(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _uuid(text: str) -> str | None:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
