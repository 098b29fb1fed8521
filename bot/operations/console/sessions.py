"""Signing in: a link that works once within ten minutes, then a session in a cookie.

The database knows SHA-256 digests alone, so what is stored there signs nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from memory.backends.sessions import prepare_threshold
from memory.migrations import SCHEMA

LINK_LASTS_S = 600
IDLE_S, LONGEST_S = 3600, 12 * 3600
COOKIE = "console"
_CONNECT_S = 5


def new_key() -> str:
    """256 bits that nobody guesses, fit for a URL and a cookie."""
    return secrets.token_urlsafe(32)


def csrf_token(session: str) -> str:
    """What every form of the session carries; only its own pages know it."""
    return hmac.new(session.encode(), b"csrf", hashlib.sha256).hexdigest()


class Sessions:
    """Links and sessions in the database. All methods raise `psycopg.Error`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def invite(self, admin: str) -> str:
        """The key of a new link for `admin`."""
        key = new_key()
        self._call("invite_to_console", _digest(key), admin, LINK_LASTS_S)
        return key

    def enter(self, key: str) -> tuple[str, str] | None:
        """Uses a link up: who signed in, and the cookie of their session. None when it does not
        work any more."""
        session = new_key()
        admin = self._call("enter_console", _digest(key), _digest(session))
        return (admin, session) if admin else None

    def admin(self, session: str, *, active: bool = True) -> str | None:
        """Whose session it is; None when it is over. It goes on while somebody is `active`."""
        lasts = (IDLE_S, LONGEST_S)
        admin_name: str | None = self._call("console_admin", _digest(session), *lasts, active)
        return admin_name

    def leave(self, session: str) -> None:
        self._call("leave_console", _digest(session))

    def _call(self, function: str, *args: object) -> Any:
        return called(self._url, function, *args)


def called(url: str, function: str, *args: object) -> Any:
    """What a function of the owner's returns. Raises `psycopg.Error`."""
    places = ", ".join(["%s"] * len(args))
    with connected(url) as connection:
        row = connection.execute(f"select {SCHEMA}.{function}({places})".encode(), args).fetchone()
    return row[0] if row else None


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection for one transaction, as the owner. Raises `psycopg.Error`."""
    with psycopg.connect(
        url, connect_timeout=_CONNECT_S, prepare_threshold=prepare_threshold(url)
    ) as connection:
        yield connection


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
