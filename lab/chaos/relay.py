"""A TCP relay as a process: `python -m lab.chaos.relay LISTEN=TARGET[,TARGET…] …`.

Addresses are HOST:PORT. Each connection goes to the next of its targets that takes it. A target may
be TARGET@HOST, which sees that address of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys

_CONNECT_S = 0.3


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while block := await source.read(65536):
            target.write(block)
            await target.drain()
    target.close()


async def _listen(listen: str, targets: list[str]) -> None:
    turns = itertools.cycle(range(len(targets)))

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(turns)
        for target in targets[first:] + targets[:first]:
            place, _, seen_at = target.partition("@")
            host, _, port = place.rpartition(":")
            seen = (seen_at, 0) if seen_at else None
            try:
                async with asyncio.timeout(_CONNECT_S):
                    there = await asyncio.open_connection(host, int(port), local_addr=seen)
            except (OSError, TimeoutError):
                continue
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
            return
        writer.close()

    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(converse, host, int(port))
    await server.serve_forever()


async def main(arguments: list[str]) -> None:
    """Relays until it is ended."""
    pairs = (argument.split("=") for argument in arguments)
    await asyncio.gather(*(_listen(listen, targets.split(",")) for listen, targets in pairs))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
