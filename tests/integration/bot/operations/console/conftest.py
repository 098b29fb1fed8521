"""The console over a real database, asked as a browser on this machine asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bot.operations.console.application import create_console
from bot.operations.console.context import Sessions, csrf_token
from bot.settings import Settings

HOST = "127.0.0.1:8080"
BASE = f"http://{HOST}"


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        database_url=database_url,
        data_dir=tmp_path,
        console_admins="ada, grace",
        timezone="UTC",
    )


@pytest.fixture
def console(settings: Settings, database_url: str) -> Flask:
    return create_console(settings, database_url)


class Browser:
    """One browser; `session` is what its cookie holds."""

    def __init__(self, console: Flask, **environ: str) -> None:
        self.client: FlaskClient = console.test_client()
        self.environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": HOST, **environ}

    def get(self, path: str, **headers: str):
        return self.client.get(
            path, environ_overrides=self.environ, base_url=BASE, buffered=True, headers=headers
        )

    def post(self, path: str, *, csrf: str | None = None, headers=None, **form: str):
        token = csrf_token(self.session) if csrf is None else csrf
        return self.client.post(
            path,
            data={**form, "csrf": token},
            environ_overrides=self.environ,
            base_url=BASE,
            buffered=True,
            headers=headers or {},
        )

    @property
    def session(self) -> str:
        found = self.client.get_cookie("console", domain="127.0.0.1", path="/console")
        return found.value if found else ""

    def sign_in(self, url: str, admin: str = "ada") -> Browser:
        assert self.get(f"/console/enter?key={Sessions(url).invite(admin)}").status_code == 303
        return self


@pytest.fixture
def ada(console: Flask, database_url: str) -> Browser:
    return Browser(console).sign_in(database_url)
