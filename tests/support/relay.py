"""A loopback TCP relay: counts connections and round trips, and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


class Relay:
    """Passes bytes on between clients and the server that `connect` reaches.

    `accepted` counts connections. `round_trips` counts how often a client spoke after the server
    had (or for the first time): requests that waited for an answer.
    """

    def __init__(self, connect: Connect) -> None:
        self.accepted = 0
        self.round_trips = 0
        self._connect = connect
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def hold(self) -> None:
        """From now on nothing passes: the server is there but never answers."""
        self._flowing.clear()

    def resume(self) -> None:
        """What was held passes, and what comes after it."""
        self._flowing.set()

    async def cut(self) -> None:
        """Ends every connection and refuses new ones: the server is gone."""
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # either side left; the other is told by closing
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_upstream = await self._connect()
        spoke_last = ["server"]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump("client", reader, to_upstream, spoke_last))
                group.create_task(self._pump("server", upstream, writer, spoke_last))
        except* OSError:
            pass
        finally:
            to_upstream.close()

    async def _pump(
        self,
        speaker: str,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        spoke_last: list[str],
    ) -> None:
        while block := await source.read(65536):
            if speaker == "client" and spoke_last[0] == "server":
                self.round_trips += 1
            spoke_last[0] = speaker
            await self._flowing.wait()
            target.write(block)
            await target.drain()
        with suppress(OSError):
            target.close()


@asynccontextmanager
async def relay_to(connect: Connect) -> AsyncIterator[Relay]:
    """A running relay, gone afterwards."""
    relay = Relay(connect)
    await relay.start()
    try:
        yield relay
    finally:
        await relay.cut()
