"""Puts the console on its path. Its code and templates are loaded at the first request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flask import Flask

from bot.operations.doctor.result import Check
from bot.settings import Settings

PREFIX = "/console"


def install_console(app: Flask, settings: Settings, url: str) -> None:
    """Adds the console before the other routes of `app`. `url`: the database."""
    ready = app.extensions["readiness"]
    app.wsgi_app = _ConsoleDoor(app.wsgi_app, settings, url, ready)  # type: ignore[method-assign]


class _ConsoleDoor:
    def __init__(
        self, below: Any, settings: Settings, url: str, ready: Callable[[], Sequence[Check]]
    ) -> None:
        self._below = below
        self._settings = settings
        self._url = url
        self._ready = ready
        self._opening = threading.Lock()
        self._console: Flask | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == PREFIX or path.startswith(f"{PREFIX}/"):
            answer: Iterable[bytes] = self._console_app()(environ, start_response)
            return answer
        below: Iterable[bytes] = self._below(environ, start_response)
        return below

    def _console_app(self) -> Flask:
        with self._opening:
            if self._console is None:
                from bot.operations.console.application import create_console

                self._console = create_console(self._settings, self._url, self._ready)
            return self._console
