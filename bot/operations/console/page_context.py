"""Holds what every page of the console works with, and draws pages in both languages.

The keys of its texts are those that the templates ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

from flask import g, redirect, render_template, request
from werkzeug.wrappers import Response

from bot.answering.texts import failure_cause
from bot.operations.console.database import ConsoleDatabase, Sessions
from bot.operations.doctor.result import Check
from bot.queue.connections import open_rpc
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, Sentence
from memory.rpc import Rpc

Result = TypeVar("Result")
_TIMEOUT_S = 120.0

CATALOGUE = Catalogue(__file__)
page_text = CATALOGUE.say


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
        """A time as people read it, in the zone of the settings."""
        if not time:
            return ""
        time_read = datetime.fromisoformat(time) if isinstance(time, str) else time
        return time_read.astimezone(self.settings.zone).strftime("%Y-%m-%d %H:%M:%S")

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
