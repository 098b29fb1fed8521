"""Holds what every page of the console works with: its database, its sessions, and drawing in both
languages.

The console reads with a role of its own. What people wrote is readable only in a transaction that
has noted the look first (`looking`). A link works once within ten minutes, then a session in a
cookie; the database knows SHA-256 digests alone. The keys of the texts are those that the templates
ask for.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as time_of_day
from typing import Any, TypeVar, cast

import psycopg
from flask import g, redirect, render_template, request
from markupsafe import Markup
from psycopg.rows import dict_row
from werkzeug.wrappers import Response

from bot.answering.texts import failure_cause
from bot.operations.doctor.result import Check
from bot.queue.connections import open_rpc
from bot.queue.looking import look_connection
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from bot.text import times
from bot.text.languages import Catalogue, Language, Sentence
from memory.migrations import SCHEMA
from memory.rpc import Rpc
from memory.scope import is_document_chat, split_conversation_id

_ROLE = "set local role bot_console"
_WITHIN_S = 10.0
_NOTE = "insert into feishu_bot.console_audit (admin, action, about) values (%s, %s, %s)"
ConsoleRow = Mapping[str, Any]
_PEOPLE = """
select open_id, max(name) as name from public.people
where open_id = any (%(ids)s) and name <> '' group by open_id
"""
_CHATS = """
select k.chat_id, coalesce(max(c.name), '') as name,
       coalesce(max(c.chat_type), max(a.chat_type), 'group') as chat_type, max(a.user_id) as person
from unnest(%(ids)s::text[]) k(chat_id)
left join public.chats c on c.chat_id = k.chat_id
left join lateral (select chat_type, user_id from public.agent_chats a
                   where a.chat_id = k.chat_id order by updated_at desc limit 1) a on true
group by k.chat_id
"""

LINK_LASTS_S = 600
IDLE_S, LONGEST_S = 3600, 12 * 3600
SESSION_COOKIE = "console"
Result = TypeVar("Result")
_TIMEOUT_S = 120.0
CATALOGUE = Catalogue(__file__)
page_text = CATALOGUE.say


class ConsoleView:
    """One transaction of the console's role."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, query: str, parameters: Mapping[str, object] | None = None) -> list[ConsoleRow]:
        """Rows by column. Raises `psycopg.Error`."""
        with self._connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(query.encode(), parameters or {})
            return list(cursor.fetchall())

    def row(self, query: str, parameters: Mapping[str, object] | None = None) -> ConsoleRow | None:
        all_rows = self.rows(query, parameters)
        return all_rows[0] if all_rows else None


class ConsoleDatabase:
    """The console's way to the memory's tables. All methods raise `psycopg.Error`."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def looking(self, admin: str, action: str, about: str) -> Iterator[ConsoleView]:
        """A view that reads what people wrote too; that `admin` looked at it is kept with it."""
        with self._acting() as connection:
            connection.execute(_NOTE, (admin, action, about[:300]))
            yield ConsoleView(connection)

    @contextmanager
    def view(self) -> Iterator[ConsoleView]:
        """A view of who, where, when and how; it changes nothing."""
        with self._acting() as connection:
            connection.execute("set transaction read only")
            yield ConsoleView(connection)

    def note(self, admin: str, action: str, about: str) -> None:
        """Keeps that `admin` did something."""
        with self._acting() as connection:
            connection.execute(_NOTE, (admin, action, about[:300]))

    def is_muted(self, chat_id: str) -> bool:
        """Whether the chat is muted, from where `/settings` and `/why` have it."""
        with owner_connection(self._url) as connection:
            row = connection.execute("select public.chat_is_quiet(%s)", [chat_id]).fetchone()
        return bool(row and row[0])

    @contextmanager
    def _acting(self) -> Iterator[psycopg.Connection[Any]]:
        with owner_connection(self._url) as connection:
            connection.execute(_ROLE)
            yield connection


class DisplayNames:
    """Names of people and chats, for pages that show no bare ids."""

    def __init__(self, people: Mapping[str, str], chats: Mapping[str, ConsoleRow]) -> None:
        self._people = people
        self._chats = chats

    def person(self, open_id: str | None) -> str:
        """The name, or "" of somebody whose name nobody has said."""
        return self._people.get(open_id or "", "")

    def chat(self, chat_id: str | None) -> tuple[str, str]:
        """Name and kind of a chat: a p2p chat is called after its person."""
        chat_row = self._chats.get(chat_id or "")
        if chat_row is None:
            return "", ""
        if is_document_chat(chat_id or ""):
            return "", "document"
        if chat_row["chat_type"] == "p2p":
            return self.person(chat_row["person"]), "p2p"
        return chat_row["name"], "group"


def display_names(
    view: ConsoleView, people: Sequence[str | None], chats: Sequence[str | None] = ()
) -> DisplayNames:
    """The names of these people and chats, and of the people of p2p chats."""
    chat_rows = view.rows(_CHATS, {"ids": sorted({one for one in chats if one})})
    of_chats = {row["chat_id"]: row for row in chat_rows}
    person_ids = {one for one in people if one} | {
        row["person"] for row in chat_rows if row["person"]
    }
    people_rows = view.rows(_PEOPLE, {"ids": sorted(person_ids)})
    return DisplayNames({row["open_id"]: row["name"] for row in people_rows}, of_chats)


def moment_of_address(text: str | None) -> str | None:
    """A moment of a page's address, as ISO 8601; None for none and for what is no moment."""
    try:
        return datetime.fromisoformat(text).isoformat() if text else None
    except ValueError:
        return None


def chat_of_conversation(conversation_id: str | None) -> str:
    """The chat of a conversation's id, or of a job's lock; "" when there is none in it."""
    parts = (conversation_id or "").split(":")
    is_one = len(parts) > 2 and parts[0] == "feishu"
    return split_conversation_id(":".join(parts))[0] if is_one else ""


def new_session_key() -> str:
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
        key = new_session_key()
        self._call("invite_to_console", _digest(key), admin, LINK_LASTS_S)
        return key

    def enter(self, key: str) -> tuple[str, str] | None:
        """Uses a link up: who signed in, and the cookie of their session. None when it does not
        work any more."""
        session = new_session_key()
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
        return call_owner_function(self._url, function, *args)


def call_owner_function(url: str, function: str, *args: object) -> Any:
    """What a function of the owner's returns. Raises `psycopg.Error`."""
    places = ", ".join(["%s"] * len(args))
    with owner_connection(url) as connection:
        row = connection.execute(f"select {SCHEMA}.{function}({places})".encode(), args).fetchone()
    return row[0] if row else None


@contextmanager
def owner_connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection for one transaction, as the owner. Raises `psycopg.Error`."""
    with look_connection(url, _WITHIN_S) as connection:
        yield connection


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


@dataclass(frozen=True)
class ConsoleContext:
    """The adapters of the console."""

    settings: Settings
    url: str
    reader: ConsoleDatabase
    sessions: Sessions
    queue: QueueOperations
    ready: Callable[[], Sequence[Check]] = list  # what `/readyz` finds

    def moment(self, time: datetime | str | None) -> str:
        """A time as people write it, in the zone of the settings and the language of the page."""
        at = self._local(time)
        now = datetime.now(self.settings.zone)
        return times.moment_text(at, page_language(), now=now) if at else ""

    def time_tag(self, time: datetime | str | None) -> Markup:
        """The same as a `<time>`, which has the seconds for programs and on hovering."""
        at = self._local(time)
        if at is None:
            return Markup("")
        tag = Markup('<time datetime="{}" title="{}">{}</time>')
        return tag.format(at.isoformat(timespec="seconds"), f"{at:%H:%M:%S}", self.moment(at))

    def day(self, day: date | str) -> str:
        """A day as people write it."""
        at = datetime.combine(date.fromisoformat(str(day)), time_of_day.min, self.settings.zone)
        return times.day_text(at, page_language(), now=datetime.now(self.settings.zone))

    def _local(self, time: datetime | str | None) -> datetime | None:
        if not time:
            return None
        time_read = datetime.fromisoformat(time) if isinstance(time, str) else time
        return time_read.astimezone(self.settings.zone)

    def clock(self, seconds: int) -> str:
        """Seconds since epoch as the time of the day."""
        return datetime.fromtimestamp(seconds, self.settings.zone).strftime("%H:%M")


def signed_in_admin() -> str:
    """Who is signed in."""
    return cast(str, g.admin)


def page_language() -> Language:
    """That of the page: what was chosen, else what the browser prefers."""
    choice = request.cookies.get("console_lang") or request.args.get("lang")
    best = choice or request.accept_languages.best_match(["en", "zh"]) or "en"
    return "zh" if best == "zh" else "en"


def draw_page(template: str, **values: Any) -> str:
    """A page in the language of the request."""
    tongue = page_language()

    def words(key: str, **parts: object) -> str:
        return page_text(key, tongue, **parts)

    def both(sentence: Sentence) -> str:
        return sentence.said(tongue)

    return render_template(
        template,
        t=words,
        both=both,
        cause=lambda one: failure_cause(one["outcome"], one["reason"], tongue),
        lang=tongue,
        theme=request.cookies.get("console_theme", ""),
        here=request.path,
        **values,
    )


def with_memory(desk: ConsoleContext, work: Callable[[Rpc], Awaitable[Result]]) -> Result:
    """What `work` returns, done as operators do it. Raises `StoreError`."""

    async def run_connected() -> Result:
        rpc = await open_rpc(desk.settings, desk.url, size=1, timeout_s=_TIMEOUT_S)
        try:
            return await work(rpc)
        finally:
            await rpc.close()

    return asyncio.run(run_connected())


def redirect_to_page(path: str, done_key: str, *about: object) -> Response:
    """To a page, which says what was done: `done_key` is a key of the words."""
    about_text = ",".join(map(str, about))
    return redirect(f"/console/{path}?done={done_key}&about={about_text}", 303)
