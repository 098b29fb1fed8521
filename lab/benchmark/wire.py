"""What the bot asks of Postgres, counted where it passes: a socket between the two.

The stand-in socket forwards every byte and reads the messages of the frontend/backend protocol. So
the counts need no extension of the server, no log, and no cooperation of the version measured:

statement     a simple Query, or an Execute of the extended protocol; BEGIN and COMMIT are some too.
transaction   the server says that it is idle (ReadyForQuery, status I) after it was asked for
              something, be it only to prepare a statement: this is what
              `pg_stat_database.xact_commit + xact_rollback` counts, without its delay of up to ten
              seconds and the one that opening a connection takes.
round trip    the client speaks after the server has; what is sent together is one.

Opening a connection counts nothing. Source: PostgreSQL, "Frontend/Backend Protocol", message
formats. It costs time, so nothing else is measured meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_STATEMENTS = frozenset(b"QE")
_LEAVES = ord("X")
_READY = ord("Z")
_UNASKED = frozenset(b"ANS")  # notification, notice, changed parameter
_IDLE = b"I"


@dataclass(slots=True)
class Counts:
    """Of one part of the bot, or of one connection."""

    statements: int = 0
    transactions: int = 0
    round_trips: int = 0

    def minus(self, before: Counts) -> Counts:
        """What came since `before`."""
        return Counts(
            *(getattr(self, one.name) - getattr(before, one.name) for one in fields(self))
        )


class Messages:
    """Splits one direction of a connection into (kind, body), from pieces of any size.

    The first message of a client has no kind and is given as kind 0.
    """

    def __init__(self, *, of_client: bool) -> None:
        self._rest = bytearray()
        self._untyped = of_client

    def fed(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """The messages that `piece` completes."""
        self._rest += piece
        while len(self._rest) >= (head := 4 if self._untyped else 5):
            (length,) = struct.unpack_from("!I", self._rest, head - 4)
            end = head - 4 + length
            if len(self._rest) < end:
                return
            kind = 0 if self._untyped else self._rest[0]
            body = bytes(self._rest[head:end])
            del self._rest[:end]
            self._untyped = False
            yield kind, body


class WireReader:
    """One connection, message by message; adds what it sees to `counts`."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._open = False
        self._answered = False
        self._worked = False

    def asked(self, kind: int) -> None:
        """The client sent a message."""
        if not self._open or kind == _LEAVES:
            return
        if self._answered:
            self.counts.round_trips += 1
            self._answered = False
        if kind in _STATEMENTS:
            self.counts.statements += 1

    def answered(self, kind: int, body: bytes) -> None:
        """The server sent a message."""
        if not self._open:
            self._open = self._answered = kind == _READY
            return
        if kind in _UNASKED:
            return
        self._answered = True
        if kind != _READY:
            self._worked = True
        elif body == _IDLE and self._worked:
            self.counts.transactions += 1
            self._worked = False


@dataclass
class Wire:
    """Counts by who connected: `name_of` makes a name from a process id."""

    server: Path
    name_of: Callable[[int], str]
    by_name: dict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))

    def total(self) -> Counts:
        """Of all together."""
        seen = list(self.by_name.values())
        return Counts(*(sum(getattr(one, f.name) for one in seen) for f in fields(Counts)))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = WireReader(self.by_name[self.name_of(_peer(writer))])
        theirs, ours = await asyncio.open_unix_connection(str(self.server / _SOCKET))
        client, server = Messages(of_client=True), Messages(of_client=False)

        def seen_of_client(piece: bytes) -> None:
            for kind, _ in client.fed(piece):
                conversation.asked(kind)

        def seen_of_server(piece: bytes) -> None:
            for kind, body in server.fed(piece):
                conversation.answered(kind, body)

        await asyncio.gather(
            _forward(reader, ours, seen_of_client), _forward(theirs, writer, seen_of_server)
        )


@asynccontextmanager
async def counting(
    server: Path, folder: Path, name_of: Callable[[int], str]
) -> AsyncIterator[Wire]:
    """A Postgres socket in `folder` that leads to the one in `server`, while the body runs."""
    wire = Wire(server, name_of)
    listening = await asyncio.start_unix_server(wire._connected, str(folder / _SOCKET))
    try:
        yield wire
    finally:
        listening.close()


def _peer(writer: asyncio.StreamWriter) -> int:
    """The process id of who connected. Source: unix(7), SO_PEERCRED."""
    held: bytes = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    return int(struct.unpack("3i", held)[0])


async def _forward(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, look: Callable[[bytes], None]
) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await source.read(65536):
            look(piece)
            target.write(piece)
            await target.drain()
    target.close()
