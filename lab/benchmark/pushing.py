"""Events pushed as Feishu pushes them: over kept connections, again when nobody acknowledged."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.doubles.feishu_events import TalkLine, TalkMention, delivery

_FEISHU_WAITS_S = 3.0
_AGAIN_S = 15.0  # Feishu's own first pause


@dataclass
class EventPusher:
    """Pushes to the ports in turn. `acks`: seconds until each acknowledgement; `again`: deliveries
    that were not acknowledged in time and pushed again."""

    ports: Sequence[int]
    acks: list[float] = field(default_factory=list)
    again: int = 0

    def __post_init__(self) -> None:
        self._ports = itertools.cycle(self.ports)
        self._lines: dict[int, list[TalkLine]] = {port: [] for port in self.ports}

    async def push(self, said: TalkMention) -> None:
        """Returns once the event is acknowledged, however often it has to be pushed."""
        while not await self._is_taken(said):
            self.again += 1
            await asyncio.sleep(_AGAIN_S)

    def close(self) -> None:
        for lines in self._lines.values():
            for line in lines:
                line.close()
            lines.clear()

    async def _is_taken(self, said: TalkMention) -> bool:
        """Whether it was acknowledged as long as Feishu waits for that."""
        port = next(self._ports)
        line = self._lines[port].pop() if self._lines[port] else TalkLine(port)
        try:
            async with asyncio.timeout(_FEISHU_WAITS_S):
                self.acks.append(await line.send(delivery(said)))
        except (TimeoutError, OSError, EOFError):
            line.close()
            return False
        self._lines[port].append(line)
        return True
