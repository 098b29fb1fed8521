"""What one mention asks of Postgres: statements, transactions and round trips, by part."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Mapping
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

from lab.benchmark.bot_processes import bot, migrate
from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import Figure
from lab.benchmark.load import Askers, Seen
from lab.benchmark.process_accounting import part_of
from lab.benchmark.setting import Setting, address
from lab.benchmark.wire import Counts, Wire, counting

_PEOPLE = 20
_WARM_UP_S = 2.0
_TAIL_S = 1.0
_LEAST_S = 3.0
_MOST_TRANSACTIONS = 4


async def count(setting: Setting, checkout: Checkout, *, streaming: bool) -> list[Figure]:
    """Twenty people talk to a bot whose database is reached through a socket that counts.

    A server of its own for each version: roles belong to a server, and versions name them anew.
    """
    folder = setting.folder / f"{checkout.label}-counted"
    server = setting.server(f"{checkout.label}-server")
    await migrate(setting, checkout, folder, address(server))
    async with (
        counting(server, folder, _part) as wire,
        bot(setting, checkout, folder, streaming=streaming, url=address(folder)) as started,
    ):
        people = Askers(setting.platform, started.port, setting.model_s(streaming=streaming))
        await people.talk(_PEOPLE, _WARM_UP_S)
        await asyncio.sleep(_TAIL_S)
        before, numbered = copy.deepcopy(wire.by_name), _transaction_number(server)
        seen = await people.talk(_PEOPLE, max(_LEAST_S, setting.seconds / 2))
        await asyncio.sleep(_TAIL_S)
        counts = _since(before, wire)
        written = _transaction_number(server) - numbered
    return _figures(seen, counts, written, streaming=streaming)


def _figures(
    seen: Seen, counts: Mapping[str, Counts], written: int, *, streaming: bool
) -> list[Figure]:
    def figure(what: str, attribute: str, bar: float | None = None) -> Figure:
        parts = {
            part: seen.per_mention(getattr(one, attribute)) for part, one in sorted(counts.items())
        }
        note = ", ".join(f"{part} {amount:.1f}" for part, amount in parts.items())
        total = sum(parts.values())
        return Figure(what, total, "per mention", bar, note=note, streaming=streaming)

    return [
        figure("statements", "statements"),
        figure("transactions", "transactions", _MOST_TRANSACTIONS),
        Figure(
            *("transactions that write", seen.per_mention(written), "per mention"),
            note="by transaction numbers, savepoints included",
            streaming=streaming,
        ),
        figure("round trips", "round_trips"),
    ]


def _since(before: Mapping[str, Counts], wire: Wire) -> dict[str, Counts]:
    passed = {part: now.minus(before.get(part, Counts())) for part, now in wire.by_name.items()}
    return {part: counts for part, counts in passed.items() if counts != Counts()}


def _part(pid: int) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return part_of(psutil.Process(pid).cmdline())
    return part_of(())


def _transaction_number(server: Path) -> int:
    """The next transaction that writes gets it; asking uses up none."""
    with psycopg.connect(address(server)) as connection:
        row = connection.execute("select pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    return int(row[0]) if row else 0
