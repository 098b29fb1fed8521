"""The bot as one command: processes of their own that stand, fall and end together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import requests

from lab.doubles.processes import (
    APP,
    ModelDouble,
    PlatformDouble,
    Process,
    eventually,
    free_port,
    running_model,
    running_platform,
    start,
    stop,
    wait_for_http,
)
from memory.backends.embedded import Server
from tests.acceptance.conftest import markdown
from tests.support.forking import run_module, run_script
from tests.support.patience import limit_s

pytestmark = pytest.mark.slow

SPECIALIST = "---\nname: one\ndescription: One.\n---\nBe one.\n"
COMMAND = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]


def lives(one: psutil.Process) -> bool:
    """Whether it is more than a zombie; it may be gone between two looks."""
    try:
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children_of(pid: int) -> set[int]:
    """The pids of its children; none when it is gone."""
    try:
        return {one.pid for one in psutil.Process(pid).children()}
    except psutil.NoSuchProcess:
        return set()


@dataclass
class OneCommand:
    """The command, and the people around it."""

    folder: Path
    port: int
    platform: PlatformDouble
    model: ModelDouble
    process: Process
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start_again(self, command: list[str] = COMMAND) -> None:
        self.process = start("bot", command, self.folder, self.environment)
        self.until_ready()

    def until_ready(self) -> None:
        """Everything works, each worker too."""

        def complete() -> bool:
            found = self.readiness()
            return bool(found.get("ready")) and not found["degraded"]

        eventually(complete, within_s=180, what=f"ready\n{self.process.output()}")

    def readiness(self) -> dict[str, Any]:
        try:
            return dict(requests.get(f"{self.url}/readyz", timeout=10).json())
        except requests.RequestException:
            return {}

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log's lines of an event; every line of the log is a JSON object."""
        lines = [json.loads(line) for line in self.process.output().splitlines()]
        return [line for line in lines if line["event"] == event]

    def pid(self, name: str) -> int:
        """The process that runs as `name` now."""
        return int(
            [one["pid"] for one in self.logged("process.started") if one["name"] == name][-1]
        )

    def everybody(self) -> set[psutil.Process]:
        top = psutil.Process(self.process.popen.pid)
        return {top, *top.children(recursive=True)}

    def ask(self, text: str = "hello", count: int = 1) -> str:
        state = self.platform.state()
        alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
        return self.platform.say(alice, self.group, f"@{state['bot']['name']} {text}", count=count)

    @property
    def group(self) -> str:
        chats = self.platform.state()["chats"]
        return str(next(c["chat_id"] for c in chats if c["name"] == "Launch team"))

    def answers(self, question: str) -> list[dict[str, Any]]:
        return [
            message
            for message in self.platform.messages(self.group)
            if message["parent_id"] == question and message["sender"]["name"] == "Memo"
        ]

    def until_answered(self, *questions: str) -> None:
        """What nobody took in is pushed again after a moment, after six seconds, after 72."""
        for question in questions:
            eventually(lambda q=question: self.answers(q), within_s=120, what="an answer")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(Server(self.folder).url, autocommit=True) as database:
            return database.execute(query).fetchall()  # type: ignore[arg-type]

    def think(self, seconds: float) -> None:
        """From now on the model takes its time."""
        rules = [{"reply": {"text": "thought", "delay_s": seconds}}]
        self.model.control("script", {"rules": rules})
        self.model.control("mode", {"mode": "rules"})


@contextmanager
def one_command(folder: Path, **environment: str) -> Iterator[OneCommand]:
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    with (
        running_model(folder) as model,
        running_platform(folder, hook, "--retry-scale", "0.02") as platform,
    ):
        model.control("mode", {"mode": "echo"})
        given = {
            **APP,
            "PORT": str(port),
            "DATA_DIR": str(folder),
            "FEISHU_DOMAIN": platform.url,
            "OPENAI_API_KEY": "test-key",
            "OPENAI_VISION": "false",
            "OPENAI_BASE_URL": model.base_url,
            "STREAM_REPLIES": "false",
            "REQUESTS_PER_MINUTE": "0",  # tests ask without a pause
            **environment,
        }
        process = start("bot", COMMAND, folder, given)
        bot = OneCommand(folder, port, platform, model, process, given)
        try:
            bot.until_ready()
            yield bot
        finally:
            stop(bot.process)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneCommand]:
    folder = tmp_path_factory.mktemp("one")
    specialists = folder / "specialists"
    specialists.mkdir()
    (specialists / "one.md").write_text(SPECIALIST)
    with one_command(folder, WORKERS="2", SPECIALISTS_DIR=str(specialists)) as bot:
        yield bot


@pytest.fixture
def bot(running: OneCommand) -> OneCommand:
    running.model.control("mode", {"mode": "echo"})
    running.model.forget()
    if running.process.popen.poll() is not None:
        running.start_again()
    running.until_ready()
    return running


def test_readiness_knows_of_every_worker_and_metrics_hold_their_numbers(bot: OneCommand) -> None:
    assert {"web", "worker-1", "worker-2", "database"} <= {
        line["name"] for line in bot.logged("process.started")
    }
    checks = bot.readiness()["checks"]
    assert (checks["worker-1"], checks["worker-2"]) == ("ok", "ok")
    bot.until_answered(bot.ask())
    for number in ('bot_turns_total{outcome="answered"}', 'bot_events_total{outcome="accepted"}'):
        eventually(lambda number=number: number in metrics_of(bot), what=number)
    assert 'bot_turns_total{outcome="undelivered"} 0.0' in metrics_of(bot), "before the first"


def metrics_of(bot: OneCommand) -> str:
    return requests.get(f"{bot.url}/metrics", timeout=10).text


def ends_of(bot: OneCommand, name: str) -> list[int]:
    return [one["status"] for one in bot.logged("process.ended") if one["name"] == name]


@pytest.mark.parametrize("name", ["worker-1", "fork-server", "web", "database"])
def test_what_is_killed_is_started_again(bot: OneCommand, name: str) -> None:
    killed, ended_before = bot.pid(name), len(ends_of(bot, name))
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: bot.pid(name) != killed, what=f"{name} is started again")
    # Postgres refuses to start until the last of its former processes has ended.
    assert ends_of(bot, name)[ended_before] == -signal.SIGKILL
    bot.until_ready()
    bot.until_answered(bot.ask())


def test_a_dead_worker_is_named_while_the_other_goes_on(bot: OneCommand) -> None:
    def degraded_without_it() -> Any:
        with contextlib.suppress(ProcessLookupError):
            os.kill(bot.pid("worker-2"), signal.SIGKILL)  # as often as it is started again
        return bot.readiness().get("degraded")

    assert eventually(degraded_without_it, what="the dead one is named") == ["worker-2"]
    bot.until_answered(bot.ask())


def test_killed_workers_are_forked_anew_and_take_up_what_was_in_hand(bot: OneCommand) -> None:
    bot.think(1.0)
    questions = [bot.ask(f"in hand {n}") for n in range(4)]
    eventually(lambda: len(bot.model.requests()) >= 4, what="the model is asked")
    killed = {bot.pid(name) for name in ("worker-1", "worker-2")}
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    bot.until_answered(*questions)

    forked = [psutil.Process(bot.pid(name)) for name in ("worker-1", "worker-2")]
    assert killed.isdisjoint(one.pid for one in forked)
    assert [one.ppid() for one in forked] == [bot.process.popen.pid] * 2
    assert all("bot.worker" in " ".join(one.cmdline()) for one in forked)
    assert [len(bot.answers(question)) for question in questions] == [1] * 4


def test_workers_go_on_without_the_fork_server(bot: OneCommand) -> None:
    workers = [psutil.Process(bot.pid(name)) for name in ("worker-1", "worker-2")]
    os.kill(bot.pid("fork-server"), signal.SIGKILL)
    bot.until_answered(bot.ask())
    assert all(one.is_running() for one in workers)


def test_sigterm_finishes_or_hands_back_what_is_running(bot: OneCommand) -> None:
    bot.think(1.5)
    quick = [bot.ask(f"quick {n}") for n in range(4)]
    eventually(lambda: len(bot.model.requests()) >= 4, what="the model is asked")
    bot.think(30)
    slow = [bot.ask(f"slow {n}") for n in range(2)]
    eventually(lambda: len(bot.model.requests()) >= 6, what="the model is asked")
    everybody = bot.everybody()
    took = bot.process.terminate(within_s=120)

    assert bot.process.popen.returncode == 0
    assert took < limit_s(15)
    assert not [one for one in everybody if lives(one)]
    assert not Server(bot.folder).answers()
    assert not bot.logged("job.failed")
    assert all(len(bot.answers(question)) == 1 for question in quick)
    bot.model.control("mode", {"mode": "echo"})
    bot.start_again()
    bot.until_answered(*slow)
    assert all(len(bot.answers(question)) == 1 for question in [*quick, *slow])


def test_sigterm_in_the_middle_of_a_crowd_loses_and_doubles_nothing(bot: OneCommand) -> None:
    bot.think(0.7)
    asked_before, failed_before = len(bot.model.requests()), len(bot.logged("job.failed"))
    questions = [bot.ask(f"crowd {n}") for n in range(15)]
    eventually(lambda: len(bot.model.requests()) > asked_before + 3, what="turns are running")
    bot.process.popen.send_signal(signal.SIGTERM)
    questions += [bot.ask(f"late {n}") for n in range(15)]  # partly taken, partly pushed again
    bot.process.popen.wait(120)
    answered = sum(bool(bot.answers(question)) for question in questions)
    assert answered < len(questions), "nothing was left to hand back"

    bot.start_again()
    bot.until_answered(*questions)
    open_jobs = (
        "select count(*) from feishu_bot.jobs"
        " where task = 'feishu.event' and status in ('waiting', 'running')"
    )
    eventually(lambda: bot.rows(open_jobs) == [(0,)], what="the queue is empty")
    assert [len(bot.answers(question)) for question in questions] == [1] * len(questions)
    assert len(bot.logged("job.failed")) == failed_before


def test_a_killed_command_can_be_started_again_at_once(bot: OneCommand) -> None:
    os.kill(bot.process.popen.pid, signal.SIGKILL)
    bot.process.popen.wait()
    bot.start_again()
    bot.until_answered(bot.ask())


def test_sighup_replaces_every_process_and_loses_nothing(bot: OneCommand) -> None:
    before = {name: bot.pid(name) for name in ("worker-1", "worker-2")}
    web = children_of(bot.pid("web"))
    bot.think(0.5)
    questions = [bot.ask("before")]
    bot.process.popen.send_signal(signal.SIGHUP)
    for number in range(12):
        questions.append(bot.ask(f"during {number}"))
        time.sleep(0.25)  # people go on asking while it happens

    def replaced() -> bool:
        gone = not any(psutil.pid_exists(pid) for pid in before.values())
        now = children_of(bot.pid("web"))
        return gone and bool(now) and web.isdisjoint(now)

    eventually(replaced, what="new processes")
    questions.append(bot.ask("after"))
    bot.until_answered(*questions)
    assert [len(bot.answers(question)) for question in questions] == [1] * len(questions)
    assert bot.readiness()["ready"]


def test_sighup_while_a_fork_server_loads_replaces_every_worker(bot: OneCommand) -> None:
    before = [bot.pid(name) for name in ("worker-1", "worker-2")]
    killed = bot.pid("fork-server")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: bot.pid("fork-server") != killed, what="another one")
    bot.process.popen.send_signal(signal.SIGHUP)

    eventually(lambda: not any(map(psutil.pid_exists, before)), what="new workers")
    bot.until_answered(bot.ask())


def test_sighup_with_settings_that_cannot_be_used_changes_nothing(bot: OneCommand) -> None:
    file = bot.folder / "specialists" / "one.md"
    before, refused_before = bot.pid("worker-1"), len(bot.logged("reload.refused"))
    file.write_text("no front matter")
    try:
        bot.process.popen.send_signal(signal.SIGHUP)
        eventually(
            lambda: len(bot.logged("reload.refused")) > refused_before,
            what="the settings are refused",
        )
    finally:
        file.write_text(SPECIALIST)
    assert bot.pid("worker-1") == before
    bot.until_answered(bot.ask())


def test_a_second_bot_in_the_same_folder_is_refused_in_one_sentence(bot: OneCommand) -> None:
    environment = {**os.environ, **bot.environment, "PORT": str(free_port())}
    second = run_module(*COMMAND[2:], env=environment)
    assert second.returncode == 2
    assert "another bot runs in" in second.stderr
    assert "supervisor.waiting" in second.stdout
    assert len(second.stderr.strip().splitlines()) == 1
    bot.until_answered(bot.ask())


def test_under_another_gunicorn_configuration_the_workers_run_too(tmp_path: Path) -> None:
    own = tmp_path / "own.conf.py"
    port = free_port()
    own.write_text(
        f"bind = '127.0.0.1:{port}'\nworkers = 2\nthreads = 4\nworker_class = 'gthread'\n"
    )
    command = [sys.executable, "-m", "gunicorn", "-c", str(own), "app:create_app()"]
    environment = {"PORT": str(port), "DATA_DIR": str(tmp_path), **APP}
    process = start("bot", command, tmp_path, environment)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/healthz", process)
        checks = partial(requests.get, f"http://127.0.0.1:{port}/readyz", timeout=10)
        eventually(lambda: checks().json()["checks"].get("worker-1") == "ok", what="a worker")
        assert process.output().count('"worker.started"') == 1
        everybody = psutil.Process(process.popen.pid).children(recursive=True)
    finally:
        stop(process)
    eventually(lambda: not [*filter(lives, everybody)], what="everything is gone")
    assert not Server(tmp_path).answers()


def test_all_workers_take_the_slots_of_a_chat_from_one_file(bot: OneCommand) -> None:
    questions = [bot.ask(f"number {n}") for n in range(10)]
    bot.until_answered(*questions)
    assert [len(bot.answers(question)) for question in questions] == [1] * 10
    for name in ("worker-1", "worker-2"):
        maps = psutil.Process(bot.pid(name)).memory_maps(grouped=True)
        assert str(bot.folder / "run" / "pace") in [one.path for one in maps]


def test_an_operators_script_works_beside_the_bot_and_leaves_its_database_running(
    bot: OneCommand,
) -> None:
    bot.until_answered(bot.ask())
    shown = run_script("check_memory", env={**os.environ, **bot.environment})
    assert shown.returncode == 0, shown.stderr
    bot.until_answered(bot.ask())


def test_the_answers_are_stored_as_they_were_sent(bot: OneCommand) -> None:
    question = bot.ask("what is kept")
    bot.until_answered(question)
    stored = eventually(
        lambda: bot.rows(
            "select content from agent_messages where role = 'assistant' and status = 'sent' "
            f"and turn_id = '{question}'"
        ),
        what="the answer is stored",
    )
    assert stored == [(markdown(bot.answers(question)[0]),)]


# Here last: what comes after it has to start everything again.
def test_everything_goes_with_the_supervisor_even_when_it_is_killed(bot: OneCommand) -> None:
    everybody = bot.everybody()
    os.kill(bot.process.popen.pid, signal.SIGKILL)
    bot.process.popen.wait()
    eventually(lambda: not [*filter(lives, everybody)], what="everything is gone")
    assert not Server(bot.folder).answers()
