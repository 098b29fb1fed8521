"""Nobody comes in but by a fresh link, from this machine, and writes from its own pages only."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from flask import Flask

from bot.operations.console.application import create_console
from bot.operations.console.context import Sessions, csrf_token, new_session_key
from bot.settings import Settings
from tests.integration.bot.operations.console.conftest import BASE, HOST, Browser

PAGES = ("/console/", "/console/queue", "/console/setup", "/console/audit", "/console/now.json")


def execute(url: str, statement: str) -> list:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_a_link_signs_in_and_its_cookie_is_for_this_console_alone(
    console: Flask, database_url: str
) -> None:
    browser = Browser(console)
    answer = browser.get(f"/console/enter?key={Sessions(database_url).invite('grace')}")

    assert (answer.status_code, answer.location) == (303, "/console/")
    [cookie] = answer.headers.getlist("Set-Cookie")
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} <= {
        p.strip() for p in cookie.split(";")
    }
    assert "Secure" not in cookie
    assert "grace" in browser.get("/console/").text


def test_over_https_the_cookie_is_secure(console: Flask, database_url: str) -> None:
    browser = Browser(console, **{"wsgi.url_scheme": "https"})
    answer = browser.get(f"/console/enter?key={Sessions(database_url).invite('ada')}")

    assert "; Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_there_is_nothing_to_see(console: Flask, path: str) -> None:
    browser = Browser(console)
    for cookie in ("", new_session_key(), "x" * 3000, "' or 1=1 --"):
        browser.client.set_cookie("console", cookie, domain="127.0.0.1", path="/console")
        answer = browser.get(path)
        assert answer.status_code == 401
        assert "scripts/console" in answer.text


def test_a_link_works_once(console: Flask, database_url: str) -> None:
    link = f"/console/enter?key={Sessions(database_url).invite('ada')}"

    assert Browser(console).get(link).status_code == 303
    second = Browser(console)
    assert second.get(link).status_code == 401
    assert second.session == ""


def test_who_only_looks_where_a_link_leads_does_not_use_it_up(
    console: Flask, database_url: str
) -> None:
    browser = Browser(console)
    link = f"/console/enter?key={Sessions(database_url).invite('ada')}"
    looked = browser.client.head(link, environ_overrides=browser.environ, base_url=BASE)

    assert looked.status_code == 405
    assert browser.get(link).status_code == 303


def test_a_link_is_over_after_ten_minutes(console: Flask, database_url: str) -> None:
    key = Sessions(database_url).invite("ada")
    [(lasts,)] = execute(
        database_url, "select extract(epoch from expires_at - now()) from feishu_bot.console_links"
    )
    execute(database_url, "update feishu_bot.console_links set expires_at = now()")

    assert 590 < lasts <= 600
    assert Browser(console).get(f"/console/enter?key={key}").status_code == 401


@pytest.mark.parametrize("key", ["", "guessed", "0" * 43, "%00", "\u4f60" * 50])
def test_a_guessed_link_opens_nothing(console: Flask, database_url: str, key: str) -> None:
    Sessions(database_url).invite("ada")

    assert Browser(console).get(f"/console/enter?key={key}").status_code == 401


def test_what_the_database_holds_signs_nobody_in(console: Flask, database_url: str) -> None:
    Sessions(database_url).invite("ada")
    [(digest,)] = execute(
        database_url, "select encode(digest, 'hex') from feishu_bot.console_links"
    )

    assert Browser(console).get(f"/console/enter?key={digest}").status_code == 401


@pytest.mark.parametrize(
    "environ",
    [
        {"HTTP_HOST": "evil.example:8080"},
        {"HTTP_HOST": "127.0.0.1.evil.example"},
        {"HTTP_HOST": "192.168.1.7:8080"},
        {"HTTP_X_FORWARDED_FOR": "203.0.113.9"},
        {"HTTP_X_FORWARDED_HOST": "bot.example.com"},
        {"HTTP_VIA": "1.1 proxy"},
        {"REMOTE_ADDR": "203.0.113.9"},
        {"HTTP_ORIGIN": "https://evil.example"},
        {"HTTP_ORIGIN": "null"},
        {"HTTP_SEC_FETCH_SITE": "cross-site"},
        {"HTTP_SEC_FETCH_SITE": "same-site", "HTTP_SEC_FETCH_MODE": "cors"},
    ],
)
def test_what_does_not_come_from_this_machine_is_refused(
    console: Flask, ada: Browser, database_url: str, environ: dict[str, str]
) -> None:
    ada.environ |= environ
    assert ada.get("/console/queue").status_code == 403

    link = f"/console/enter?key={Sessions(database_url).invite('ada')}"
    stranger = Browser(console, **environ)
    assert stranger.get(link).status_code == 403
    assert Browser(console).get(link).status_code == 303  # and the link is not used up


@pytest.mark.parametrize(
    "path", ["/console/queue/J1/drop", "/console/queue/retry", "/console/prefer", "/console/leave",
             "/console/setup"],
)  # fmt: skip
def test_a_write_needs_the_token_of_the_session(ada: Browser, path: str) -> None:
    for token in ("", "0" * 64, csrf_token(new_session_key()), "\u4f60"):
        answer = ada.post(path, csrf=token)
        assert answer.status_code == 403
    assert ada.get("/console/").status_code == 200


def test_a_write_of_another_page_is_refused_even_with_the_token(ada: Browser) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ):
        assert ada.post("/console/leave", headers=headers).status_code == 403
    assert ada.post("/console/leave", headers={"Origin": f"http://{HOST}"}).status_code == 303


def test_leaving_ends_the_session_everywhere(console: Flask, ada: Browser) -> None:
    kept = ada.session
    ada.post("/console/leave")

    other = Browser(console)
    other.client.set_cookie("console", kept, domain="127.0.0.1", path="/console")
    assert other.get("/console/").status_code == 401


@pytest.mark.parametrize("column", ["seen_at", "created_at"])
def test_a_session_ends_by_silence_and_by_age(ada: Browser, database_url: str, column: str) -> None:
    execute(
        database_url,
        f"update feishu_bot.console_sessions set {column} = now() - interval '13 hours'",
    )

    assert ada.get("/console/").status_code == 401


def test_a_page_that_draws_itself_again_keeps_no_session_alive(
    ada: Browser, database_url: str
) -> None:
    past = "update feishu_bot.console_sessions set seen_at = now() - interval '59 minutes'"
    fresh = "select seen_at > now() - interval '1 minute' from feishu_bot.console_sessions"
    execute(database_url, past)

    ada.get("/console/", **{"HX-Request": "true"})
    assert execute(database_url, fresh) == [(False,)]
    ada.get("/console/")
    assert execute(database_url, fresh) == [(True,)]


def test_who_is_no_admin_any_more_is_out(
    settings: Settings, ada: Browser, database_url: str
) -> None:
    narrowed = create_console(replace(settings, console_admins="grace"), database_url)
    other = Browser(narrowed)
    other.client.set_cookie("console", ada.session, domain="127.0.0.1", path="/console")

    assert other.get("/console/").status_code == 401
    link = f"/console/enter?key={Sessions(database_url).invite('ada')}"
    assert other.get(link).status_code == 401


def test_every_answer_forbids_what_the_pages_do_not_need(ada: Browser) -> None:
    for path in (*PAGES, "/console/nowhere", "/console/static/console.css"):
        headers = ada.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert ada.get("/console/").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "page",
    [
        "https://evil.example/",
        "//evil.example",
        "/console/\\evil",
        "/console/../x",
        "/console/\r\nX: y",
    ],
)
def test_a_choice_of_language_leads_back_to_the_console(ada: Browser, page: str) -> None:
    answer = ada.post("/console/prefer", page=page, lang="zh", theme="dark")

    assert answer.location == "/console/"
    assert 'lang="zh-CN"' in ada.get("/console/").text
    assert 'data-theme="dark"' in ada.get("/console/").text


def test_nobody_is_let_in_while_the_database_is_away(settings: Settings) -> None:
    away = "postgresql://nobody@127.0.0.1:9/none"
    browser = Browser(create_console(settings, away))
    browser.client.set_cookie("console", new_session_key(), domain="127.0.0.1", path="/console")

    assert browser.get("/console/").status_code == 503
