"""A worker among workers: it says that it lives, and learns its share of Feishu's limits."""

from __future__ import annotations

import asyncio
import math
import signal

import structlog

from bot.feishu.pacing import OwnSlots, SharedPace, SharedSlots
from bot.process import plan
from bot.process.board import BEAT_S, Board
from bot.settings import Settings

log = structlog.get_logger()


class Standing:
    """The place of this process. Under a supervisor its workers share one file of slots; among
    supervisors and workers by themselves each has its share of every limit. `fallen` is set when
    the supervisor says that another worker died."""

    def __init__(self, settings: Settings) -> None:
        self.fallen = asyncio.Event()
        self._slot = plan.slot()
        self._board = Board(settings.data_dir) if self._slot else None
        self.pace = SharedPace(SharedSlots(self._board.pace) if self._board else OwnSlots())

    def share_with(self, everywhere: int) -> None:
        """So many workers, on all machines, send in the name of the app."""
        here = max(self._board.alive(), 1) if self._board else 1  # it may not have said so yet
        share = min(1.0, here / max(everywhere, here))
        if not math.isclose(share, self.pace.share):
            log.info("feishu.share", workers_here=here, workers=everywhere, share=round(share, 3))
        self.pace.share = share

    async def keep(self) -> None:
        """Says every two seconds that this worker lives, until it is cancelled."""
        if self._board is None:
            return
        # Before this worker is known as one: the signal would end who does not expect it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.fallen.set)
        attendance = self._board.announce(self._slot)
        try:
            while True:
                attendance.beat()
                await asyncio.sleep(BEAT_S)
        finally:
            attendance.withdraw()
