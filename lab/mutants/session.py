"""The pytest plugin that runs the mutants: it collects their tests once and forks for each mutant.

The child writes the changed file into the copy of the checkout, so that processes started by tests
have the mutant too, and gives the functions that are loaded already their changed code. It runs the
mutant's tests until the first one fails. All children share one Postgres and the migrated template
of their databases; a mutant in SQL has a copy of the template, in which it is executed. Whatever a
child started ends with it, and the server with the session.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import psycopg
import pytest

from lab.mutants.offspring import adopt_orphans, end_offspring, offspring
from memory import migrations

PLAN = "LAB_MUTANTS_PLAN"  # names the file with the plan: a JSON object, see `Running`
CONTROL = "control"  # the tests that killed a mutant, run on the code as it is
_TEMPLATE = "migrated_template"  # the fixture that names it, and its name here
_FROM_TEMPLATE = {_TEMPLATE, "backend"}  # the second asks for the first while a test runs
_LEFT_BEHIND = "select datname from pg_database where datname like 'test\\_%'"
_NO_SUPABASE = "[supabase"  # these cases start Node, and the same tests run on Postgres

Functions = dict[str, list[FunctionType]]
Changed = Mapping[str, Any]


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no child is left behind
    adopt_orphans()
    plan = json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8"))
    config.pluginmanager.register(Running(plan))


def pytest_unconfigure() -> None:
    atexit.register(end_offspring)  # after the server has stopped by itself


class Running:
    """`plan`: `mutants`, each with `id`, `path`, `text`, `statement` and `tests` (names, or
    whole modules); `results`, the file to append to; `limit_s`: how long its tests begin."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        self._failed: list[str] = []
        self._passed = 0
        self._server: Any = None
        self._template = _TEMPLATE
        self._functions: Functions = {}
        self._spared: set[int] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)
        self._passed += report.when == "call" and report.passed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            if _NO_SUPABASE not in item.nodeid:
                for name in (item.nodeid.split("::")[0], item.nodeid.split("[")[0]):
                    items.setdefault(name, []).append(item)
        with_database = [one for one in session.items if _FROM_TEMPLATE & {*_fixtures_of(one)}]
        if with_database:
            self._prepare_databases(session, with_database[0])
        self._spared = offspring()
        gc.unfreeze()  # collection freezes what it loads, and frozen functions are not listed
        self._functions = _functions_by_file()
        gc.freeze()  # or every child copies the pages that its collections touch
        killers = set()
        for mutant in self._plan["mutants"]:
            wanted = [item for name in mutant["tests"] for item in items.get(name, ())]
            killers.add(self._run(mutant, wanted, self._plan["limit_s"]))
        control = [item for item in session.items if item.nodeid in killers]
        nothing = {"id": CONTROL, "path": "", "statement": ""}
        self._run(nothing, control, self._plan["limit_s"] * (1 + len(control)))
        return True

    def _prepare_databases(self, session: pytest.Session, item: pytest.Item) -> None:
        """Starts the server of all children and migrates the template."""
        support: Any = importlib.import_module("tests.support.postgres")
        self._server = server = support.start_server()
        support.start_server = lambda: server
        server.execute(f"create database {_TEMPLATE}")
        migrations.apply_migrations(server.database(_TEMPLATE))
        for fixture in session._fixturemanager.getfixturedefs(_TEMPLATE, item) or ():
            fixture.func = lambda postgres_server: self._template  # type: ignore[misc]

    def _run(self, mutant: Changed, items: Sequence[pytest.Item], limit_s: float) -> str:
        """Runs one mutant in a process of its own and writes what came of it. Returns which test
        failed, or "". After `limit_s` no other test begins, and one that runs has as long again."""
        with _original_kept(mutant["path"]):
            return self._run_in_a_child(mutant, items, limit_s)

    def _run_in_a_child(self, mutant: Changed, items: Sequence[pytest.Item], limit_s: float) -> str:
        started, (reads, writes) = time.monotonic(), os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            with contextlib.suppress(BaseException):
                os.write(
                    writes, json.dumps(self._outcome(mutant, items, started + limit_s)).encode()
                )
            os._exit(0)
        os.close(writes)
        with _ended(child, self._spared):
            is_in_time = bool(select.select([reads], [], [], limit_s + self._plan["limit_s"])[0])
            said = os.read(reads, select.PIPE_BUF) if is_in_time else b'{"outcome": "timed out"}'
        os.close(reads)
        self._drop_databases()
        outcome: dict[str, Any] = json.loads(said or b'{"outcome": "died"}')
        row = {"id": mutant["id"], **outcome, "seconds": round(time.monotonic() - started, 1)}
        with Path(self._plan["results"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return str(outcome.get("by", ""))

    def _outcome(
        self, mutant: Changed, items: Sequence[pytest.Item], until: float
    ) -> dict[str, Any]:
        try:
            self._apply(mutant)
        except Exception as exc:  # noqa: BLE001  whatever is wrong with it, the others go on
            return {"outcome": "broken", "reason": f"{type(exc).__name__}: {exc}"[:500]}
        for done, item in enumerate(items):
            if time.monotonic() > until:
                left = len(items) - done
                return {"outcome": "out of time", "passed": self._passed, "left": left}
            following = items[done + 1] if done + 1 < len(items) else None
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed and mutant["id"] != CONTROL:
                return {"outcome": "killed", "by": self._failed[0]}
        if self._failed:
            return {"outcome": "killed", "by": " ".join(self._failed)[:2000]}
        survived = self._passed or mutant["id"] == CONTROL
        return {"outcome": "survived" if survived else "untested", "passed": self._passed}

    def _apply(self, mutant: Changed) -> None:
        if mutant["path"]:
            path = Path(mutant["path"]).resolve()
            path.write_text(mutant["text"], encoding="utf-8")
            if path.suffix == ".py":
                _exchange_code(self._functions.get(str(path), ()), mutant["text"], str(path))
        if mutant["statement"]:
            self._template = f"test_{mutant['id'].replace('-', '_')}"
            self._server.execute(f"create database {self._template} template {_TEMPLATE}")
            _execute(self._server.database(self._template), mutant["statement"])
            if not mutant["path"]:
                _execute_after_migrations(mutant["statement"])

    def _drop_databases(self) -> None:
        if self._server:
            with psycopg.connect(self._server.url, autocommit=True) as connection:
                for (name,) in connection.execute(_LEFT_BEHIND).fetchall():
                    connection.execute(f'drop database "{name}" with (force)'.encode())


def _fixtures_of(item: pytest.Item) -> Sequence[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else ()


def _functions_by_file() -> Functions:
    functions: Functions = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            functions.setdefault(one.__code__.co_filename, []).append(one)
    return functions


def _exchange_code(functions: Iterable[FunctionType], text: str, path: str) -> None:
    """Gives the loaded functions of the file the code that they have in `text`. Whoever imports the
    module later finds the changed file."""
    codes = {(c.co_qualname, c.co_firstlineno): c for c in _codes(compile(text, path, "exec"))}
    for function in functions:
        # a line that is added or gone moves the functions below it, which stay as they are
        changed = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if changed and changed != function.__code__:
            function.__code__ = changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _execute(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(b"set search_path = public")
        connection.execute(statement.encode())


def _execute_after_migrations(statement: str) -> None:
    """Databases that a test migrates itself have the mutant too."""
    apply = migrations.apply_migrations

    def changed(database_url: str, **options: Any) -> list[str]:
        applied = apply(database_url, **options)
        if applied:
            _execute(database_url, statement)
        return applied

    migrations.apply_migrations = changed


@contextlib.contextmanager
def _original_kept(path: str) -> Iterator[None]:
    original = Path(path).read_bytes() if path else b""
    try:
        yield
    finally:
        if path:
            Path(path).write_bytes(original)


@contextlib.contextmanager
def _ended(child: int, spared: Set[int]) -> Iterator[None]:
    """Ends the child and everything it has started."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        end_offspring(spared)
