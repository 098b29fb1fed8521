"""The console beside a running sandbox, in a real browser: every page, both languages and looks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import requests

from lab.doubles.one_command import Sandbox
from lab.doubles.processes import ROOT, clean_environment, stop
from tests.support import depth
from tests.support.pages import (
    browser,
    findings,
    is_wider_than_its_window,
    looked,
    scrolled_sideways,
)

pytestmark = pytest.mark.slow

PAGES = ("", "turns", "people", "memory", "feedback", "imports", "queue", "usage", "setup", "audit")
REFUSED = "om_refused"
_TROUBLE = f"""
insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, tenant_key, state, error,
                         intended)
select t.id, c.conversation_id, c.user_id, c.actor_id, c.chat_id, c.tenant_key, t.state, t.error,
       jsonb_build_object('outcome', t.outcome, 'reason', t.reason)
from (select * from agent_turns order by created_at limit 1) c,
     (values ('om_failed_1', 'sent', null, 'apologised', 'timeout'),
             ('om_failed_2', 'sent', null, 'apologised', 'wrong_key'),
             ('{REFUSED}', 'failed', 'feishu 230001', 'undelivered', 'feishu 230001'))
       t (id, state, error, outcome, reason);
insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, tenant_key, role,
                            content, status, error)
select conversation_id, user_id, actor_id, id, chat_id, tenant_key, 'assistant', 'the answer',
       'failed', error
from agent_turns where id = '{REFUSED}';
insert into feishu_bot.jobs (task, lock, args, status)
select 'handle', conversation_id, jsonb_build_object(
  'received_ms', (extract(epoch from now()) * 1000)::bigint, 'failed_with', 'ModelTrouble',
  'payload', jsonb_build_object('event', jsonb_build_object(
     'sender', jsonb_build_object('sender_id', jsonb_build_object('open_id', actor_id)),
     'message', jsonb_build_object('message_id', 'om_given_up')))), 'failed'
from agent_turns where id = '{REFUSED}';
insert into chat_imports (tenant_key, chat_id, chat_type, started_by, until, state, error, messages)
select tenant_key, chat_id, 'group', actor_id, now(), 'failed', 'no_scope', 1200
from agent_turns where id = '{REFUSED}';
"""
SHOTS = os.environ.get("SHOTS", "")  # a folder: pictures of every view, to be looked at


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    running = Sandbox(tmp_path_factory.mktemp("console"))
    try:
        running.ask("Alice", "remember that our launch is on 3 March")
        turn = running.ask("Alice", "when is our launch?")
        running.give_feedback(turn)
        ask_with_long_names(running)
        yield running
    finally:
        stop(running.process)


def ask_with_long_names(running: Sandbox) -> None:
    """Names and questions without a space in which a line could break."""
    name = "欧阳司徒上官诸葛夏侯皇甫尉迟公孙" * 3
    running.people[name] = running.platform.post("/people", name=name)["open_id"]
    everybody = list(running.people.values())
    made = running.platform.post(
        "/chats", name="产品发布筹备与客户支持联合工作群" * 3, members=everybody
    )
    for text in ("请问我们的产品发布会定在哪一天" * 20, f"what is {'x' * 300}?"):
        running.ask(name, text, made["chat_id"])


@pytest.fixture(scope="module")
def signed_in(sandbox: Sandbox) -> Iterator[Any]:
    with browser() as launched:
        context = launched.new_context()
        page = context.new_page()
        page.goto(sandbox.link())
        assert page.url == f"{sandbox.url}/console/"
        yield page


def filled(page: Any, path: str) -> None:
    """Opens what the page `path` shows when somebody has asked for it."""
    if path == "turns":
        assert findings(page) == []
        for words in ("launch", "发布会", "x"):
            page.fill("input[name=words]", words)
            page.click("form[role=search] button")
            assert words in page.inner_text(".jobs a.question")
            assert findings(page) == []
        page.fill("input[name=words]", "")
        page.click("form[role=search] button")
        page.click(".jobs a")
        page.wait_for_selector(".drawn .card-body")
    if path == "memory":
        assert findings(page) == []
        page.fill("input[name=person]", "Alice")
        page.click("form[role=search] button")
        page.wait_for_selector(".kept details")
        page.evaluate("document.querySelectorAll('.kept details').forEach(one => one.open = true)")
    if path == "setup":
        page.wait_for_selector(".checks li", timeout=60_000)


def opened(page: Any, sandbox: Sandbox, path: str, language: str) -> None:
    """Shows the page `path` in light colours and a wide window."""
    chosen = {"console_lang": language, "console_theme": "light"}
    page.context.add_cookies(
        [
            {"name": name, "value": value, "domain": "127.0.0.1", "path": "/console"}
            for name, value in chosen.items()
        ]
    )
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{sandbox.url}/console/{path}")
    filled(page, path)


def looks(language: str, width: int) -> tuple[str, ...]:
    """How a page is looked at: colours are the same in every language and width."""
    in_both = SHOTS or depth.IS_DEEP or (language, width) == ("en", 1280)
    return ("light", "dark") if in_both else ("light",)


@pytest.fixture(scope="module")
def in_trouble(sandbox: Sandbox) -> Sandbox:
    """Two questions without an answer, an answer that Feishu refused, a job that was given up."""
    with psycopg.connect(sandbox.database_url, autocommit=True) as connection:
        connection.execute(_TROUBLE)  # type: ignore[arg-type]
    return sandbox


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_sound_in_both_languages_looks_and_widths(
    sandbox: Sandbox, signed_in: Any, path: str
) -> None:
    page = signed_in
    said: list[str] = []
    listen = lambda message: said.append(message.text) if message.type == "error" else None  # noqa: E731
    page.on("console", listen)
    for language in ("en", "zh"):
        opened(page, sandbox, path, language)
        assert page.get_attribute("html", "lang") == ("zh-CN" if language == "zh" else "en")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert not is_wider_than_its_window(page), "before anything was drawn anew"
            for look in looks(language, width):
                page.evaluate(f"document.documentElement.dataset.theme = '{look}'")
                view = (language, width, look)
                assert looked(page, look) == [], view
                assert not is_wider_than_its_window(page), view
                if SHOTS:
                    name = f"{path or 'now'}-{language}-{look}-{width}.png"
                    page.screenshot(path=f"{SHOTS}/{name}", full_page=True)
    page.remove_listener("console", listen)
    assert said == []


@pytest.mark.parametrize("path", [*PAGES, f"turns/{REFUSED}"])
def test_a_page_is_sound_while_something_is_wrong(
    in_trouble: Sandbox, signed_in: Any, path: str
) -> None:
    for language in ("en", "zh"):
        opened(signed_in, in_trouble, path, language)
        if not path:
            assert signed_in.locator(".alarmed .alarms a").count() >= 3
        for width in (1280, 390):
            signed_in.set_viewport_size({"width": width, "height": 800})
            for look in looks(language, width):
                signed_in.evaluate(f"document.documentElement.dataset.theme = '{look}'")
                view = (language, width, look)
                assert looked(signed_in, look) == [], view
                assert not is_wider_than_its_window(signed_in), view


@pytest.mark.parametrize("path", ["people", "audit"])
def test_on_a_phone_the_menu_is_one_line_with_the_page_in_sight(
    sandbox: Sandbox, signed_in: Any, path: str
) -> None:
    opened(signed_in, sandbox, path, "en")
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.reload()
    current = signed_in.locator(".bar nav [aria-current]").bounding_box()

    assert signed_in.locator(".bar nav").bounding_box()["height"] < 60
    assert current["x"] >= 0
    assert current["x"] + current["width"] <= 390
    signed_in.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_phone_no_table_scrolls_sideways(
    sandbox: Sandbox, signed_in: Any, language: str
) -> None:
    wide = {}
    for path in PAGES:
        opened(signed_in, sandbox, path, language)
        signed_in.set_viewport_size({"width": 390, "height": 844})
        if tables := scrolled_sideways(signed_in):
            wide[path] = tables
        if SHOTS:
            signed_in.screenshot(path=f"{SHOTS}/phone-{path or 'now'}-{language}.png")
    signed_in.set_viewport_size({"width": 1280, "height": 720})
    assert wide == {}


def test_all_of_it_is_reached_with_the_keyboard(sandbox: Sandbox, signed_in: Any) -> None:
    page = signed_in
    page.goto(f"{sandbox.url}/console/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(len(PAGES) + 6):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('href')"))
    assert {f"/console/{path}" for path in PAGES} <= reached


def test_the_sandbox_asks_for_a_link_too(sandbox: Sandbox) -> None:
    answer = requests.get(f"{sandbox.url}/console", timeout=10)

    assert answer.status_code == 401
    assert "scripts/console" in answer.text
    other = requests.get(f"{sandbox.url}/console", headers={"Host": "evil.example"}, timeout=10)
    assert other.status_code == 403


def test_who_is_not_named_gets_no_link(sandbox: Sandbox) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        sandbox.link("--as", "mallory")

    assert refused.value.returncode == 2
    assert "CONSOLE_ADMINS" in refused.value.stderr


def test_without_admins_there_is_no_console_and_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys; from app import create_app; from bot.settings import load\n"
        "app = create_app(load())\n"
        "answer = app.test_client().get('/console')\n"
        "loaded = [m for m in sys.modules if m.startswith('bot.operations.console')]\n"
        "sys.stderr.write(f'{answer.status_code} {loaded}')"  # stdout has the log of every thread
    )
    environment = {
        **clean_environment(),
        "FEISHU_APP_ID": "cli_a1",
        "FEISHU_APP_SECRET": "s",
        "FEISHU_ENCRYPT_KEY": "k",
        "FEISHU_VERIFICATION_TOKEN": "v",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        "PATH": os.environ["PATH"],
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    assert ran.stderr == "404 []"
