"""The operators' scripts as they are run: arguments, output, exit status."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rich.cells import cell_len

from bot.feishu.cards import answer_card, card_content
from bot.feishu.client import FeishuClient
from bot.queue.inbox import Inbox
from lab.doubles.lite import SupabaseLite
from lab.doubles.processes import APP, ROOT, running_platform
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.fallback.store_jobs import MissedTurn, StoreJobs
from memory.scope import memory_context
from memory.store import MemoryStore
from memory.tables.directory import PeopleStore, Sighting
from memory.text import has_han
from tests.support.exchanges import exchange
from tests.support.forking import Forked, run_module, run_script
from tests.support.people import Group

pytestmark = pytest.mark.anyio

_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    return {**kept, "DATABASE_URL": database_url, "DATA_DIR": str(tmp_path), "COLUMNS": "200"}


@pytest.fixture
async def rpc(database_url: str) -> AsyncIterator[PostgresRpc]:
    pool = connection_pool(database_url, size=2)
    await pool.open()
    rpc = PostgresRpc(pool)
    yield rpc
    await rpc.close()


@pytest.fixture
def memory(rpc: PostgresRpc) -> MemoryStore:
    return MemoryStore(rpc)


@pytest.fixture
def people(rpc: PostgresRpc) -> PeopleStore:
    return PeopleStore(rpc)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def group() -> Group:
    return Group()


def _run(
    environment: Mapping[str, str], script: str, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return run_script(script, *arguments, env=environment, stdin=stdin)


def _json(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def _log_line(event: str, **fields: Any) -> str:
    return json.dumps({"event": event, "timestamp": datetime.now(UTC).isoformat(), **fields})


@pytest.mark.parametrize(
    "script",
    [
        "bot",
        "check_memory",
        "decisions",
        "doctor",
        "memory",
        "migrate",
        "monitor",
        "queue",
        "setup",
        "timers",
    ],
)
def test_help_has_examples_fits_80_columns_and_the_script_is_a_link(
    environment: dict[str, str], script: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", f"scripts.{script}", "--help"],
        cwd=ROOT, env=environment | {"COLUMNS": "80"}, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip

    assert done.returncode == 0
    assert f"scripts/{script} " in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    for heavy in ("openai", "lark_oapi", "supabase"):
        assert f" {heavy}\n" not in done.stderr, heavy
    assert (ROOT / "scripts" / script).readlink() == Path("_python")


_OPERATORS = [
    *("backup", "restore", "check_memory", "console", "decisions", "doctor", "memory", "migrate"),
    *("monitor", "queue", "replay", "setup", "timers", "bot"),
]
_PARTS = ("memory get", "memory forget", "memory verify", "queue retry", "bot import")


def test_the_help_of_every_operators_script_is_chinese_on_a_chinese_terminal(
    environment: dict[str, str],
) -> None:
    """A text of argparse's or ours that has no Chinese is missing in `help_texts`."""
    chinese = environment | {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "COLUMNS": "80"}
    english = {}
    for script in (*_OPERATORS, *_PARTS):
        name, *command = script.split()
        lines = _run(chinese, name, *command, "--help").stdout.splitlines()
        assert lines[0].startswith("用法："), script
        words = [line for line in lines if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", line)]
        english[script] = [line for line in words if "scripts/" not in line]

    assert {script: lines for script, lines in english.items() if lines} == {}


LOOKING = [
    ("check_memory", ()),
    ("decisions", ()),
    ("backup", ("copy.dump",)),
    ("replay", ("om_1",)),
    ("console", ()),
    ("migrate", ("--check",)),
    ("memory", ("get", "--person", "ou_1")),
]


@pytest.mark.parametrize(("script", "arguments"), LOOKING)
def test_a_database_that_is_away_is_configuration_trouble(
    environment: dict[str, str], script: str, arguments: tuple[str, ...]
) -> None:
    away = environment | {"DATABASE_URL": "postgresql://127.0.0.1:1/none"}

    done = _run(away, script, *arguments)

    assert done.returncode == 2
    assert "the database refuses the connection: check DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "settings", "sentence"),
    [
        (
            "bot.process.supervisor",
            {"PORT": "x"},
            "PORT 的值 'x' 无效：必须是整数，不小于 1",
        ),
        ("bot.worker", {"TIMEZONE": "Mars"}, "TIMEZONE 不是时区名称"),
        ("scripts.migrate", {"DATABASE_URL": "x"}, "DATABASE_URL 不是"),
        ("scripts.backup", {"DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "数据库拒绝连接"),
    ],
)
def test_a_wrong_setting_is_named_in_the_language_of_the_terminal(
    environment: dict[str, str], module: str, settings: dict[str, str], sentence: str
) -> None:
    given = environment | {"LANG": "zh_CN.UTF-8", "LC_ALL": ""} | settings
    done = run_module(module, env=given)

    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("arguments", [("verify", "none"), ("verify", "{key}", "--text", "none")])
def test_a_file_that_cannot_be_read_is_named(
    environment: dict[str, str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (receipt := tmp_path / "receipt.json").write_text("{}")
    done = _run(environment, "memory", *(one.format(key=receipt) for one in arguments))

    assert (done.returncode, done.stdout) == (2, "")
    assert "none cannot be read: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_start_does_not_overlook_an_option() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "start", "--prot", "8081"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "takes no options" in done.stderr


def test_monitor_speaks_chinese_on_a_chinese_terminal(environment: dict[str, str]) -> None:
    done = _run(environment, "monitor", "--db", "--once", "--lang", "zh")

    assert done.stdout.startswith("监控：")
    assert "正常" in done.stdout
    assert not set(re.findall(r"^([A-Z][a-z ]+|jobs [a-z]+)", done.stdout, re.MULTILINE))
    assert "没有失败的提问" in done.stdout


def test_monitor_alarms_in_chinese_on_a_chinese_terminal(
    environment: dict[str, str], database_url: str
) -> None:
    inbox = Inbox(database_url)
    inbox.enqueue("message:om_1", {}, lock=None, received_ms=0)
    inbox.close()
    done = _run(environment, "monitor", "--db", "--once", "--lang", "zh", "--max-queue", "0")

    assert done.stderr == "告警 队列：1 项等待，限值为 0 → scripts/queue list\n"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("migrate", "--check"), "已是最新"),
        (("memory", "get"), "请给出 --person"),
        (("replay", "om_nothing"), "没有这一轮问答"),
        (("restore", "/nothing"), "不是文件"),
        (("queue", "show", "J9"), "不在已放弃的任务中"),
    ],
)
def test_what_a_script_answers_is_chinese_on_a_chinese_terminal(
    environment: dict[str, str], command: tuple[str, ...], says: str
) -> None:
    done = _run(environment | {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, *command)

    assert says in done.stdout + done.stderr


def test_why_the_embedded_server_does_not_start_is_said_in_chinese_too(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "holiday.jpg").touch()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    here = kept | {"DATA_DIR": str(tmp_path), "LANG": "zh_CN.UTF-8", "LC_ALL": ""}
    done = run_module("bot.process.supervisor", env=here)

    assert done.returncode == 2
    assert has_han(done.stderr)
    assert "belongs to" not in done.stderr
    assert "holds no database" not in done.stderr


def test_a_database_that_is_out_of_date_names_the_next_step(
    environment: dict[str, str], blank_database_url: str
) -> None:
    done = _run(environment | {"DATABASE_URL": blank_database_url}, "check_memory")

    assert done.returncode == 2
    assert "run scripts/migrate" in done.stderr


@pytest.mark.parametrize(("script", "arguments"), LOOKING)
def test_a_mistyped_folder_is_named_and_no_database_is_made_there(
    environment: dict[str, str], tmp_path: Path, script: str, arguments: tuple[str, ...]
) -> None:
    mistyped = tmp_path / "dta"

    done = _run(environment | {"DATABASE_URL": "", "DATA_DIR": str(mistyped)}, script, *arguments)

    assert done.returncode == 2
    assert f"there is no database in {mistyped}: check DATA_DIR" in done.stderr
    assert not mistyped.exists()


def test_the_doctor_names_a_mistyped_folder_and_makes_no_database_there(
    environment: dict[str, str], tmp_path: Path
) -> None:
    mistyped = tmp_path / "dta"

    done = _run(environment | {"DATABASE_URL": "", "DATA_DIR": str(mistyped)}, "doctor", "--json")

    [check] = [one for one in json.loads(done.stdout)["checks"] if one["name"] == "database"]
    assert check["state"] == "warn"
    assert f"there is no database in {mistyped}: check DATA_DIR" in check["en"]
    assert not mistyped.exists()


def test_a_file_that_is_no_backup_is_named_before_a_database_is_made(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file, folder = tmp_path / "notes.txt", tmp_path / "new"
    file.write_text("milk\n", encoding="utf-8")
    new = environment | {"DATABASE_URL": "", "DATA_DIR": str(folder)}

    done = _run(new, "restore", str(file))

    assert done.returncode == 2
    assert done.stderr.startswith(f"restore: {file} is not a backup: give a file that scripts/")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("doctor", ("--help",)), ("bot", ()), ("decisions", ()), ("migrate", ())],
)
def test_a_reader_that_stops_reading_is_no_error(
    environment: dict[str, str], tmp_path: Path, script: str, arguments: tuple[str, ...]
) -> None:
    read, write = os.pipe()
    os.close(read)
    errors = tmp_path / "errors"

    with errors.open("wb") as file:
        fds = [0, write, file.fileno()]
        status = Forked([f"scripts.{script}", *arguments], environment, ROOT, fds).wait(180)

    os.close(write)
    assert (status, errors.read_text()) == (0, "")


@pytest.mark.parametrize("script", ["start", "test"])
def test_the_help_of_a_shell_script_is_prose(script: str) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / script, "--help"], capture_output=True, text=True, check=True
    )

    assert f"scripts/{script}" in done.stdout
    assert [sign for sign in ("if [", '"$', "exit 0") if sign in done.stdout] == []


def test_a_malformed_setting_is_named(environment: dict[str, str]) -> None:
    done = _run(environment | {"RETENTION_DAYS": "soon"}, "memory", "get", "--person", "ou_x")

    assert done.returncode == 2
    assert "RETENTION_DAYS" in done.stderr


async def test_check_memory_lists_conversations_and_finds_nothing_wrong(
    environment: dict[str, str], memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("alice"), "Tea?", "Yes.", "And more.")
    await exchange(memory, group.turn("bob", chat="elsewhere"), "Coffee?", "No.")

    everything = _run(environment, "check_memory", "--messages")
    here = _json(_run(environment, "check_memory", "--json", "--chat", group.chat()))

    assert everything.returncode == 0, everything.stdout
    assert "QAA" in everything.stdout
    assert "Coffee?" in everything.stdout
    assert "no problems found" in everything.stdout
    [conversation] = here["conversations"]
    assert conversation["user_id"] == group.person("alice")
    assert [row["content"] for row in conversation["rows"]] == ["Tea?", "Yes.", "And more."]
    assert here["findings"] == []
    assert "sent text" in here["skipped"]


async def test_check_memory_counts_the_turns_that_are_not_stored_yet(
    environment: dict[str, str], database_url: str, group: Group
) -> None:
    async with connection_pool(database_url, size=1) as pool:
        turn = MissedTurn(group.turn(), group.message("q"), "Tea?", "2026-01-02T03:04:05Z")
        await StoreJobs(pool).keep_turn(turn, unsent=True)

    assert _json(_run(environment, "check_memory", "--json"))["unstored"] == 1
    assert "1 turn waiting" in _run(environment, "check_memory", "--lang", "en").stdout


async def test_check_memory_names_each_thing_that_is_wrong(
    environment: dict[str, str],
    memory: MemoryStore,
    connection: psycopg.Connection,
    group: Group,
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "Yes.")
    await memory.begin_turn(alice, turn_id="om_waiting", content="Still there?")
    await memory.record_reply(alice, turn_id="om_waiting", cards=["Yes"])
    connection.execute(
        "update public.agent_messages set updated_at = now() - interval '5 minutes'"
        " where status = 'pending'"
    )
    connection.execute("update public.agent_messages set message_id = null where status = 'sent'")
    connection.execute("alter table public.agent_notes disable row level security")
    connection.execute("alter table feishu_bot.inbox disable row level security")
    connection.execute(
        "insert into public.agent_chats (id, user_id, chat_id, root_id)"
        " values ('feishu:z:', 'y', 'z', '')"
    )

    done = _run(environment, "check_memory", "--json", "--no-probe")

    assert done.returncode == 1
    found = {(f["check"], f["problem"].split(" (")[0]) for f in _json(done)["findings"]}
    assert found == {
        ("delivery", "it has been pending for 5 min"),
        ("delivery", "it is marked sent without a message_id"),
        ("id format", "the id is not feishu:oc_…:om_… or …:main"),
        ("id format", "the person is not an open_id"),
        ("row-level security", "it is switched off"),
        ("row-level security", "it is switched off in the queue's schema"),
    }


async def test_check_memory_wants_a_key_to_sign_with_and_probes_with_it(
    environment: dict[str, str], supabase_lite: SupabaseLite
) -> None:
    supabase = environment | APP | {
        "DATABASE_URL": supabase_lite.database_url,
        "SUPABASE_URL": supabase_lite.url,
        "SUPABASE_PUBLISHABLE_KEY": supabase_lite.publishable_key,
        "SUPABASE_SECRET_KEY": supabase_lite.secret_key,
    }  # fmt: skip

    apart = _run(
        supabase | {"SUPABASE_JWT_SECRET": supabase_lite.jwt_secret},
        "check_memory", "--json", "--chat", "oc_none",
    )  # fmt: skip
    unsigned = _run(supabase, "check_memory", "--json", "--chat", "oc_none")

    assert [f for f in _json(apart)["findings"] if f["check"] == "isolation"] == []
    assert unsigned.returncode == 2
    assert "Neither SUPABASE_JWT_PRIVATE_KEY nor SUPABASE_JWT_SECRET is set" in unsigned.stderr


async def test_check_memory_compares_what_is_stored_with_what_feishu_shows(
    environment: dict[str, str], memory: MemoryStore, tmp_path: Path
) -> None:
    with running_platform(tmp_path, "http://127.0.0.1:1/webhook/event") as platform:
        chat_id = platform.state()["chats"][0]["chat_id"]
        feishu = FeishuClient(platform.url, APP["FEISHU_APP_ID"], APP["FEISHU_APP_SECRET"])
        group = Group()
        alice = group.turn("alice")
        for number, stored in enumerate(("**Yes**, 是的", "Not what was sent")):
            content = card_content(answer_card("**Yes**, 是的"))
            sent = await feishu.send(
                chat_id, "chat_id", msg_type="interactive", content=content, uuid=f"u{number}"
            )
            turn_id = f"om_turn{number}"
            await memory.begin_turn(alice, turn_id=turn_id, content="Question")
            await memory.record_reply(alice, turn_id=turn_id, cards=[stored])
            await memory.mark_sent(
                alice, turn_id=turn_id, chunk=0, content=stored, message_id=sent.message_id
            )
        await feishu.close()

        done = _run(
            environment | APP | {"FEISHU_DOMAIN": platform.url},
            "check_memory", "--verify-sent", "--json",
        )  # fmt: skip

    assert done.returncode == 1
    [finding] = _json(done)["findings"]
    assert finding["check"] == "sent text"
    assert finding["where"] == sent.message_id


async def test_memory_gets_sets_and_clears(
    environment: dict[str, str], memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "Yes.")
    await memory.merge_working_memory(alice, scope="user", patch={"old": 1, "name": "Alice"})
    person = ["--person", alice.user_id]

    changed = _run(environment, "memory", "set", *person, "--json", '{"old": null, "year": "2026"}')
    _run(environment, "memory", "set", *person, "--conversation", alice.conversation_id, "-",
         stdin='{"topic": "tea"}')  # fmt: skip
    stored = await memory.working_memory(alice)
    shown = _json(_run(environment, "memory", "get", *person, "--history", "--json"))
    cleared = _run(environment, "memory", "clear", *person)

    assert _json(changed) == {"name": "Alice", "year": "2026"}
    assert (stored.user, stored.chat) == ({"name": "Alice", "year": "2026"}, {"topic": "tea"})
    assert shown["rows"]["agent_messages"] == 2
    assert [change["actor_id"] for change in shown["changes"]] == [
        "service",
        "service",
        alice.user_id,
    ]
    assert cleared.returncode == 0
    left = await memory.working_memory(alice)
    assert (left.user, left.chat) == ({}, {"topic": "tea"})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["get"], "give --person"),
        (["set", "--person", "ou_x", "{"], "not JSON"),
        (["set", "--person", "ou_x", "[]"], "JSON object"),
        (["set", "--conversation", "feishu:oc_x:main", "{}"], "give --person"),
        (["clear", "--person", "ou_x", "--conversation", "oc_x"], "is no conversation"),
        (["export", "--conversation", "feishu:oc_x:main"], "about one person"),
        (["summarise", "--person", "ou_x"], "give --conversation"),
    ],
)
def test_memory_says_what_is_missing(
    environment: dict[str, str], arguments: list[str], sentence: str
) -> None:
    done = _run(environment, "memory", *arguments)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


async def test_memory_says_what_it_would_do_and_what_it_cannot(
    environment: dict[str, str], memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "Yes.")
    person = ["--person", alice.user_id]

    unasked = _run(environment, "memory", "forget", *person)
    short = _run(environment, "memory", "summarise", *person, "--conversation",
                 alice.conversation_id)  # fmt: skip

    assert (unasked.returncode, "add --yes" in unasked.stderr) == (2, True)
    assert (short.returncode, "nothing to fold" in short.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["memory", "get"], ["memory", "clear"], ["memory", "export"], ["memory", "forget", "--yes"],
        ["memory", "set", "{}"], ["check_memory"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_unknown_person_is_named_and_no_success(
    environment: dict[str, str], arguments: list[str]
) -> None:
    en = _run(environment, *arguments, "--person", "ou_nobody", "--lang", "en")
    zh = _run(environment, *arguments, "--person", "Nobody", "--lang", "zh")

    assert (en.returncode, en.stdout) == (1, "")
    assert en.stderr.startswith("nothing is stored about 'ou_nobody': scripts/check_memory lists")
    assert (zh.returncode, "没有关于 'Nobody' 的任何内容" in zh.stderr) == (1, True)


async def test_a_person_is_found_by_name_and_by_the_beginning_of_the_id(
    environment: dict[str, str], memory: MemoryStore, people: PeopleStore
) -> None:
    alice, other = "ou_4f2a9c00000000000000000000000001", "ou_4f2a9c11111111111111111111111111"
    for open_id, name in ((alice, "Alice"), (other, "陈晨")):
        context = memory_context(
            chat_id="oc_1", root="main", subject=open_id, actor=open_id, tenant_key="t"
        )
        await exchange(memory, context, f"{name}?", "Yes.")
        await people.remember([Sighting("t", open_id, name, 5000)])

    by_name = _json(_run(environment, "memory", "get", "--person", "陈晨", "--json"))
    beginning = _run(environment, "memory", "get", "--person", "ou_4f2a9c0…", "--lang", "en")
    several = _run(environment, "memory", "get", "--person", "ou_4f2a9c…")

    assert by_name["rows"]["agent_messages"] == 2
    assert beginning.stdout.startswith("memory: ")
    assert "rows of Alice" in beginning.stdout.splitlines()[0]
    assert "\t0" not in beginning.stdout
    assert several.returncode == 1
    assert "2 people are meant" in several.stderr


async def test_on_a_terminal_the_verdict_comes_first_and_everything_fits_80_columns(
    environment: dict[str, str],
    memory: MemoryStore,
    people: PeopleStore,
    connection: psycopg.Connection,
) -> None:
    person, chat = "ou_4f2a9c00000000000000000000000001", f"oc_{'b' * 32}"
    context = memory_context(
        chat_id=chat, root=f"om_{'c' * 32}", subject=person, actor=person, tenant_key="t"
    )
    await exchange(memory, context, "Tea?", "Yes.")
    await people.remember([Sighting("t", person, "Alice", 5000)])
    connection.execute(
        "insert into public.agent_decisions (message_id, chat_id, actor_id, respond, reason, tier)"
        " values (%s, %s, %s, true, 'mentioned', 'explicit')",
        (f"om_{'d' * 32}", chat, person),
    )
    shown = {
        (script, lang): _on_a_terminal(environment, script, *more, "--lang", lang)
        for script, *more in (
            ("check_memory", "--messages"), ("decisions",),
            ("memory", "get", "--person", "Alice"),
        )
        for lang in ("en", "zh")
    }  # fmt: skip

    for (script, lang), lines in shown.items():
        assert max(map(cell_len, lines)) <= 80, (script, lang, max(lines, key=cell_len))
    first = {key: lines[:2] for key, lines in shown.items()}
    assert first["check_memory", "en"] == [
        "isolation: held", "memory: no problems found",
    ]  # fmt: skip
    assert first["check_memory", "zh"] == ["隔离：有效", "记忆：没有发现问题"]
    assert first["decisions", "en"][0] == "decisions: 1 answered, 0 silent"
    assert first["memory", "zh"][0].startswith("记忆：Alice (ou_4f2a9c…) 的 ")
    listed = "\n".join(shown["check_memory", "en"])
    assert "oc_bbbbbb…" in listed
    assert "Alice (ou_4f2a9c…)" in " ".join(listed.split())
    assert person not in listed


def _on_a_terminal(environment: Mapping[str, str], script: str, *arguments: str) -> list[str]:
    """What it shows on a terminal of 80 columns, without colours."""
    screen, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    bare = {name: value for name, value in environment.items() if name != "COLUMNS"}
    with tempfile.TemporaryFile() as errors:
        fds = [0, side, errors.fileno()]
        command = [f"scripts.{script}", *arguments]
        process = Forked(command, {**bare, "TERM": "xterm"}, ROOT, fds)
        os.close(side)
        raw = b""
        with contextlib.suppress(OSError):  # Linux: the other side has closed
            while piece := os.read(screen, 65536):
                raw += piece
        os.close(screen)
        status = process.wait(180)
        errors.seek(0)
        assert status == 0, errors.read().decode()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw.decode("utf-8"))
    return [line.rstrip() for line in text.replace("\r", "").splitlines()]


async def test_memory_exports_and_forgets_a_person_with_what_waits_in_the_queue(
    environment: dict[str, str], database_url: str, memory: MemoryStore, group: Group,
    tmp_path: Path,
) -> None:  # fmt: skip
    alice, bob = group.turn("alice"), group.turn("bob")
    await exchange(memory, alice, "Tea?", "Yes.")
    await exchange(memory, bob, "Coffee?", "No.")
    inbox = Inbox(database_url)
    waiting = {"event": {"sender": {"sender_id": {"open_id": alice.user_id}}}}
    inbox.enqueue("message:om_1", waiting, lock=alice.conversation_id, received_ms=0)
    inbox.close()
    file = tmp_path / "alice.jsonl"

    _run(environment, "memory", "export", "--person", alice.user_id, "-o", str(file))
    done = _run(environment, "memory", "forget", "--person", alice.user_id, "--yes", "--json")

    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {"agent_chats", "agent_messages", "jobs"} <= {r["table"] for r in rows}
    assert file.stat().st_mode & 0o077 == 0
    assert done.returncode == 0
    deleted = _json(done)["deleted"]
    assert (deleted["agent_messages"], deleted["jobs in the queue"]) == (2, 1)
    assert [c.user_id for c in await memory.list_conversations()] == [bob.user_id]


async def test_memory_summarises_a_conversation(
    environment: dict[str, str], memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    for number in range(6):
        await exchange(memory, alice, f"Remember that item {number} ships in May.", "Noted.")
    conversation = ["--conversation", alice.conversation_id]

    plain = _run(environment, "memory", "summarise", *conversation)
    again = _json(_run(environment, "memory", "summarise", *conversation, "--json"))

    assert plain.returncode == 0, plain.stderr
    assert "Version 1: 3 messages, 3 folded now" in plain.stdout
    assert "Remember that item 1 ships in May." in plain.stdout
    assert (again["version"], again["messages"], again["folded_now"]) == (1, 3, 0)
    assert again["content"].splitlines()[0] in plain.stdout


async def test_memory_forgets_a_conversation(
    environment: dict[str, str], memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "Yes.")

    done = _run(
        environment, "memory", "forget", "--conversation", alice.conversation_id, "--yes"
    )  # fmt: skip

    assert "agent_messages\t2" in done.stdout
    assert await memory.list_conversations() == ()


async def test_memory_says_when_a_message_is_being_answered(
    environment: dict[str, str], database_url: str, connection: psycopg.Connection, group: Group
) -> None:
    inbox = Inbox(database_url)
    waiting = {"event": {"sender": {"sender_id": {"open_id": group.person("alice")}}}}
    inbox.enqueue("message:om_1", waiting, lock=None, received_ms=0)
    inbox.close()
    connection.execute("set search_path = feishu_bot")
    connection.execute("update jobs set status = 'running', worker_id = 1")

    done = _run(environment, "memory", "forget", "--person", group.person("alice"), "--yes")

    assert done.returncode == 1
    assert "run this again" in done.stderr


def test_decisions_are_listed_with_counts_by_reason(
    environment: dict[str, str], connection: psycopg.Connection
) -> None:
    connection.execute(
        "insert into public.agent_decisions"
        " (message_id, chat_id, actor_id, respond, reason, tier, since_bot_ms, verdict, judge_ms)"
        " values ('om_1', 'oc_1', 'ou_1', true, 'llm_judge', 'judge', 4200, 'yes', 640),"
        " ('om_2', 'oc_1', 'ou_1', false, 'no_trigger', 'none', null, null, null),"
        " ('om_3', 'oc_2', 'ou_1', false, 'no_trigger', 'none', null, null, null)"
    )

    done = _run(environment, "decisions")
    of_chat = _json(_run(environment, "decisions", "--json", "--chat", "oc_1", "--since", "1h"))

    assert "yes in 640 ms" in done.stdout
    assert "no_trigger\tno\t2" in done.stdout
    assert of_chat["reasons"] == {"llm_judge": 1, "no_trigger": 1}


def test_monitor_reads_a_log_once(environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "bot.log"
    log.write_text(
        _log_line("turn", turn_id="om_1", outcome="answered", seconds=3.0, tokens_in=5)
        + "\nTraceback",
        encoding="utf-8",
    )

    picture = _json(_run(environment, "monitor", str(log), "--once", "--json"))
    tables = _run(environment, "monitor", str(log), "--once")

    assert picture["report"]["turns"] == {"answered": 1}
    assert picture["report"]["latency"]["total"]["p95"] == 3.0
    assert picture["alarms"] == []
    assert "tokens in\t5" in tables.stdout


def test_monitor_reads_standard_input_to_its_end(environment: dict[str, str]) -> None:
    line = _log_line("turn", turn_id="om_1", outcome="answered", seconds=3.0)

    once = _json(_run(environment, "monitor", "-", "--once", "--json", stdin=line))
    followed = _run(environment, "monitor", "-", "--interval", "0.1", stdin=line)

    assert once["report"]["turns"] == {"answered": 1}
    assert "turns=1" in followed.stdout.splitlines()[-1]


def test_monitor_names_the_alarm_and_ends_with_status_1(
    environment: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "bot.log"
    log.write_text(
        _log_line("turn", outcome="answered", seconds=30) + "\n"
        + _log_line("job.failed", level="error", error="StoreUnavailable") + "\n",
        encoding="utf-8",
    )  # fmt: skip
    inbox = Inbox(database_url)
    inbox.enqueue("message:om_1", {}, lock=None, received_ms=0)
    inbox.close()
    limits = ["--max-p95", "20", "--max-errors", "0", "--max-queue", "0", "--max-pending-age", "0"]

    done = _run(environment, "monitor", str(log), "--db", "--once", *limits)
    quiet = _run(environment, "monitor", str(log), "--once", "--max-errors", "1")

    assert done.returncode == 1
    named = [line.split(":")[0] for line in done.stderr.splitlines()]
    assert named == ["ALARM p95", "ALARM errors", "ALARM queue", "ALARM pending age"]
    assert "jobs waiting\t1" in done.stdout
    assert quiet.returncode == 0


def test_monitor_follows_a_log_across_rotation_until_it_is_stopped(
    environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "bot.log"
    log.write_text(_log_line("turn", turn_id="om_1", outcome="answered") + "\n", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.monitor", str(log), "--interval", "0.05"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        _wait_for(process.stdout, "turns=1")
        log.rename(tmp_path / "bot.log.1")
        log.write_text(
            _log_line("turn", turn_id="om_2", outcome="answered") + "\n", encoding="utf-8"
        )
        _wait_for(process.stdout, "turns=2")
        process.send_signal(signal.SIGINT)

        assert process.wait(60) == 0
    finally:
        process.kill()
        process.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to look at"),
        (["x.log", "--max-queue", "1"], "need --db"),
        (["no such.log", "--once"], "no such log file"),
    ],
)
def test_monitor_says_what_is_missing(
    environment: dict[str, str], arguments: list[str], sentence: str
) -> None:
    done = _run(environment, "monitor", *arguments)

    assert done.returncode == 2
    assert sentence in done.stderr


def _wait_for(lines: Any, words: str) -> None:
    assert any(words in line for line in lines), f"the output ended without {words!r}"
