"""Starting: one command without configuration, and one clear sentence when something is missing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import requests

from lab.doubles.processes import (
    APP,
    ROOT,
    BotUnderTest,
    PlatformDouble,
    eventually,
    free_port,
    running_platform,
    start,
    stop,
    wait_for_http,
)
from memory import migrations
from tests.support.feishu_api import feishu_api
from tests.support.forking import run_module

GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]
WORKER = [sys.executable, "-m", "bot.worker"]


def test_without_any_configuration_a_sandbox_with_a_working_bot_starts(tmp_path: Path) -> None:
    port = free_port()
    command = ["scripts/start"] if (ROOT / ".venv").exists() else GUNICORN
    process = start("bot", command, tmp_path, {"PORT": str(port), "DATA_DIR": str(tmp_path)})
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/readyz", process)
        logged = process.output().partition('"event": "ready"')[0].count('"event"')
        assert logged <= 5, process.output()
        page = requests.get(url, timeout=5)
        assert "html" in page.headers["Content-Type"]
        platform = PlatformDouble(url, process)
        state = platform.state()
        alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
        chat = state["chats"][0]["chat_id"]
        first = platform.say(alice, chat, "@Memo remember that our launch is on 3 March")
        eventually(lambda: len(platform.messages(chat)) == 2, what="a card")
        platform.say(alice, chat, "@Memo when is our launch?", root_id=first)
        eventually(lambda: len(platform.messages(chat)) == 4, what="a second card")
        assert "3 March" in str(platform.messages(chat)[3]["card"])
        assert "launch" in str(platform.get("/inspect", chat_id=chat))
    finally:
        stop(process)
    assert process.popen.returncode == 0, process.output()


# An embedded database as a trial left it; the last line of its ledger differs.
_TRIAL = """
import sys, psycopg
from pathlib import Path
from memory import migrations
from memory.backends import embedded
url = embedded.start_embedded(Path(sys.argv[1]))
migrations.apply_migrations(url)
with psycopg.connect(url) as connection:
    connection.execute("update feishu_bot.migrations set name = '0752_told_since_at_once.sql'"
                       " where name = 'schema.sql'")
"""


def test_the_database_of_a_trial_is_refused_in_one_sentence_and_kept(tmp_path: Path) -> None:
    trial, port = tmp_path / "trial", str(free_port())
    made = run([sys.executable, "-c", _TRIAL, str(trial)], tmp_path, {})
    assert made.returncode == 0, made.stderr

    ended = run([sys.executable, "-m", "bot.process.supervisor"], trial, {"PORT": port})
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert said.count(migrations.TRIAL_MESSAGE) == 1
    assert "Traceback" not in said
    assert '"stack"' not in said

    for command in (["migrate"], ["migrate", "--check"]):
        ended = run([sys.executable, "-m", f"scripts.{command[0]}", *command[1:]], trial, {})
        assert (ended.returncode, ended.stderr) == (1, f"migrate: {migrations.TRIAL_MESSAGE}\n")

    dump = str(tmp_path / "trial.dump")
    for script, folder in (("backup", trial), ("restore", tmp_path / "fresh")):
        done = run([sys.executable, "-m", f"scripts.{script}", dump], folder, {})
        assert done.returncode == 0, done.stderr


# An embedded database whose tables are not those that the functions need.
_DIFFERENT = """
import sys, psycopg
from pathlib import Path
from memory import migrations
from memory.backends import embedded
url = embedded.start_embedded(Path(sys.argv[1]))
migrations.apply_migrations(url)
with psycopg.connect(url) as connection:
    connection.execute("alter table agent_notes rename column title to heading")
    connection.execute("delete from feishu_bot.migrations where name like 'functions %'")
"""


def test_a_database_that_cannot_be_brought_up_to_date_is_named_in_one_sentence(
    tmp_path: Path,
) -> None:
    folder, port = tmp_path / "different", str(free_port())
    made = run([sys.executable, "-c", _DIFFERENT, str(folder)], tmp_path, {})
    assert made.returncode == 0, made.stderr

    ended = run([sys.executable, "-m", "bot.process.supervisor"], folder, {"PORT": port})
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert said.count("cannot be brought up to date, and was not changed") == 1
    assert "another DATA_DIR" in said
    assert "Traceback" not in said
    assert '"stack"' not in said


SUPABASE = {
    "SUPABASE_URL": "https://x.supabase.co",
    "SUPABASE_PUBLISHABLE_KEY": "k",
    "SUPABASE_SECRET_KEY": "k",
}
NOBODY_THERE = "postgresql://bot:hush-hush@127.0.0.1:1/postgres"


MISTAKES = [
    ({**APP, "FEISHU_ENCRYPT_KEY": ""}, "FEISHU_ENCRYPT_KEY is not set"),
    ({**APP, "FEISHU_VERIFICATION_TOKEN": ""}, "FEISHU_VERIFICATION_TOKEN is not set"),
    ({**APP, "FEISHU_APP_SECRET": ""}, "FEISHU_APP_SECRET is not set"),
    ({**APP, "SUPABASE_URL": "https://x.supabase.co"}, "SUPABASE_PUBLISHABLE_KEY is not set"),
    ({"SUPABASE_URL": "https://x.supabase.co"}, "SUPABASE_PUBLISHABLE_KEY is not set"),
    ({"SUPABASE_URL": "x.supabase.co"}, "SUPABASE_URL is not a URL such as"),
    ({**APP, **SUPABASE}, "Neither SUPABASE_JWT_PRIVATE_KEY nor SUPABASE_JWT_SECRET is set"),
    ({"OPENAI_BASE_URL": "api.openai.com/v1"}, "OPENAI_BASE_URL is not a URL such as"),
    ({"PORT": "eighty"}, "PORT is not valid"),
    ({"TIMEZONE": "Shanghai"}, "TIMEZONE is not the name of a time zone such as Asia/Shanghai"),
    ({"HISTORY_MESSAGES": "0"}, "HISTORY_MESSAGES is not valid"),
    ({**APP, "FEISHU_DOMAIN": "http://evil.example"}, "FEISHU_DOMAIN must be an https://"),
    ({**APP, "FEISHU_DOMAIN": "open.feishu.cn"}, "FEISHU_DOMAIN is not an origin such as"),
    ({"DATA_DIR": "README.md"}, "DATA_DIR is 'README.md': nothing can be written there."),
    ({"DATA_DIR": "/proc/nothing"}, "DATA_DIR is '/proc/nothing': nothing can be written"),
    ({**APP, "DATABASE_URL": "http://hush-hush"}, "DATABASE_URL is not a connection string"),
    ({**APP, "DATABASE_URL": NOBODY_THERE}, "the database refuses the connection: check"),
]


@pytest.mark.parametrize(
    ("command", "environment", "sentence"),
    [(GUNICORN, *mistake) for mistake in MISTAKES] + [(WORKER, *one) for one in MISTAKES[::4]],
    ids=lambda value: value if isinstance(value, str) else "worker" if value == WORKER else "",
)
def test_what_is_missing_or_malformed_is_named_in_one_sentence(
    tmp_path: Path, command: list[str], environment: dict[str, str], sentence: str
) -> None:
    _must_end_with(sentence, run(command, tmp_path, environment))


@pytest.mark.parametrize("folder", ["/proc/nothing", "/proc", "README.md/x"])
@pytest.mark.parametrize("command", [GUNICORN, WORKER], ids=["gunicorn", "worker"])
def test_a_data_dir_that_cannot_be_made_is_one_sentence_with_a_real_app_too(
    tmp_path: Path, command: list[str], folder: str
) -> None:
    ended = run(command, tmp_path, {**APP, "DATA_DIR": folder})
    _must_end_with(f"DATA_DIR is {folder!r}: nothing can be written there", ended)


SCRIPTS = [["migrate"], ["check_memory"], ["monitor", "--db", "--once"], ["memory", "link-users"],
           ["decisions"]]  # fmt: skip
NO_DATABASE = ({**APP, "DATABASE_URL": NOBODY_THERE}, "the database refuses the connection: check")
NO_KEYS = ({"SUPABASE_URL": "https://x.supabase.co"}, "SUPABASE_PUBLISHABLE_KEY is not set")
NO_FOLDER = ({"DATA_DIR": "README.md"}, "DATA_DIR is 'README.md': nothing can be written there.")


@pytest.mark.parametrize(
    ("script", "environment", "sentence"),
    [(script, *NO_DATABASE) for script in SCRIPTS]
    + [(SCRIPTS[0], *NO_KEYS), (SCRIPTS[1], *NO_KEYS), (SCRIPTS[0], *NO_FOLDER)],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_script_names_what_is_wrong_in_one_sentence(
    tmp_path: Path, script: list[str], environment: dict[str, str], sentence: str
) -> None:
    command = [sys.executable, "-m", f"scripts.{script[0]}", *script[1:]]
    _must_end_with(sentence, run(command, tmp_path, environment))


@pytest.mark.parametrize(
    ("command", "variable"),
    [(GUNICORN, "PORT"), (WORKER, "METRICS_PORT"),
     ([sys.executable, "-m", "sandbox", "--port"], "--port")],
    ids=["web", "worker", "sandbox"],
)  # fmt: skip
def test_a_port_that_is_taken_is_named(tmp_path: Path, command: list[str], variable: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        given = [*command, port] if variable == "--port" else command
        ended = run(given, tmp_path, {variable: port})

    _must_end_with(f"{variable} is {port}, where", ended)


def test_a_typing_error_in_the_name_of_a_setting_is_told_once_and_without_its_value(
    tmp_path: Path, database_url: str
) -> None:
    environment = {"OPENAI_BASEURL": "hush-hush", "OPENAI_ORG_ID": "org-1"}
    bot = BotUnderTest(tmp_path, free_port(), {**APP, **environment, "DATABASE_URL": database_url})
    bot.environment["PORT"] = str(bot.port)
    try:
        said = bot.start_web().output()
    finally:
        bot.stop()

    assert said.count('"settings.misspelt"') == 1
    assert '"variable": "OPENAI_BASEURL", "meant": "OPENAI_BASE_URL"' in said
    assert "OPENAI_ORG_ID" not in said
    assert "hush-hush" not in said


def test_a_web_process_reads_its_settings_again_although_it_listens_itself(
    tmp_path: Path, database_url: str
) -> None:
    bot = BotUnderTest(tmp_path, free_port(), {**APP, "DATABASE_URL": database_url})
    bot.environment["PORT"] = str(bot.port)
    try:
        web = bot.start_web()
        os.kill(web.popen.pid, signal.SIGHUP)
        eventually(lambda: "Hang up: Master" in web.output(), what="the signal arrives")
        eventually(lambda: "Worker exiting" in web.output(), what="new workers")
        wait_for_http(f"{bot.url}/healthz", web)
    finally:
        bot.stop()


def test_without_migrations_it_says_so_waits_and_goes_on_by_itself(
    tmp_path: Path, blank_database_url: str
) -> None:
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    with running_platform(tmp_path, hook, "--retry-scale", "0.002") as platform:
        bot = BotUnderTest(
            tmp_path, port, {**APP, "PORT": str(port), "DATABASE_URL": blank_database_url}
        )
        bot.environment["FEISHU_DOMAIN"] = platform.url
        try:
            web = bot.start_web()
            worker = start("worker", WORKER, tmp_path, bot.environment)
            bot.workers.append(worker)
            state = platform.state()
            alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
            chat = next(c["chat_id"] for c in state["chats"] if c["name"] == "Launch team")
            said = platform.say(alice, chat, "@Memo hello")
            eventually(lambda: "webhook.queue_unavailable" in web.output(), what="a 503")
            eventually(lambda: "database.not_migrated" in worker.output(), what="a line")
            ready = requests.get(f"{bot.url}/readyz", timeout=9)

            migrations.apply_migrations(blank_database_url)

            eventually(lambda: "worker.started" in worker.output(), what="the worker goes on")
            platform.post("/redeliver", message_id=said)  # as Feishu does, sooner or later
            eventually(lambda: len(platform.messages(chat)) == 2, what="an answer")
            eventually(lambda: requests.get(f"{bot.url}/readyz", timeout=9).ok, what="readiness")
        finally:
            bot.stop()

    assert ready.status_code == 503
    lacking = "the database lacks schema.sql: run scripts/migrate"
    assert ready.json()["checks"]["database"] == lacking
    assert worker.output().count("database.not_migrated") == 1
    assert "Traceback" not in worker.output()


def test_a_wrong_model_key_is_said_at_the_start_and_makes_the_bot_not_ready(
    tmp_path: Path, database_url: str
) -> None:
    with feishu_api() as model, running_platform(tmp_path, "http://127.0.0.1:9/hook") as platform:
        refused = {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}
        model.answers("POST", "/v1/chat/completions", refused, status=401)
        environment = {**APP, "DATABASE_URL": database_url, "FEISHU_DOMAIN": platform.url,
                       "OPENAI_API_KEY": "hush-hush", "OPENAI_BASE_URL": f"{model.url}/v1",
                       "INLINE_WORKER": "0"}  # fmt: skip
        bot = BotUnderTest(tmp_path, free_port(), environment, webs=2)
        bot.environment |= {"PORT": str(bot.port), "DATA_DIR": str(tmp_path)}
        try:
            web = bot.start_web()
            eventually(lambda: "start.not_ready" in web.output(), what="a line of the log")
            ready = requests.get(f"{bot.url}/readyz", timeout=9)
        finally:
            bot.stop()

    assert ready.status_code == 503
    assert ready.json()["checks"]["model"].startswith("OPENAI_API_KEY is wrong (401)")
    assert web.output().count("start.not_ready") == 1
    assert "hush-hush" not in web.output()
    assert len([asked for asked in model.asked if "chat" in asked.path]) <= 2  # two web processes


def run(
    command: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """A process with nothing but `environment`, until it ends."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder), "DATA_DIR": str(folder)}
    given = {**bare, **environment}
    if command[:2] == [sys.executable, "-m"]:
        return run_module(*command[2:], env=given)
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=180)


def _must_end_with(sentence: str, ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == 2
    assert ended.stderr.startswith(sentence)
    assert len(ended.stderr.strip().splitlines()) == 1
    for secret in (*APP.values(), "hush-hush"):
        assert secret not in ended.stderr


def test_a_database_newer_than_the_code_is_said_at_the_start(
    tmp_path: Path, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("insert into feishu_bot.migrations (name) values ('9990_new.sql')")
    environment = {**APP, "DATABASE_URL": database_url, "DATA_DIR": str(tmp_path),
                   "FEISHU_DOMAIN": "http://127.0.0.1:9"}  # fmt: skip
    worker = start("worker", WORKER, tmp_path, environment)
    try:
        eventually(lambda: "worker.started" in worker.output(), what=worker.output())
        (line,) = [line for line in worker.output().splitlines() if '"database.newer"' in line]
        assert "9990_new.sql" in line
    finally:
        stop(worker)
