"""A worker among workers: it says that it lives, and learns how many share Feishu's limits."""

from __future__ import annotations

import asyncio
import math

import procrastinate
import structlog
from procrastinate.exceptions import ConnectorException

from bot.feishu.pacing import OwnSlots, Pace, SharedSlots
from bot.queue.jobs import workers_alive
from bot.settings import Settings
from bot.supervision import plan
from bot.supervision.board import BEAT_S, Board

log = structlog.get_logger()


class Standing:
    """The place of this process. Under a supervisor its workers share one file of slots; among
    supervisors and workers by themselves each has its share of every limit."""

    def __init__(self, settings: Settings) -> None:
        self._slot = plan.slot()
        self._board = Board(settings.data_dir) if self._slot else None
        self.pace = Pace(SharedSlots(self._board.pace) if self._board else OwnSlots())

    async def keep(self, app: procrastinate.App) -> None:
        """Says so every two seconds until it is cancelled."""
        presence = self._board.announce(self._slot) if self._board else None
        try:
            while True:
                if presence:
                    presence.beat()
                await self._count(app)
                await asyncio.sleep(BEAT_S)
        finally:
            if presence:
                presence.withdraw()

    async def _count(self, app: procrastinate.App) -> None:
        try:
            everywhere = await workers_alive(app)
        except ConnectorException as exc:
            log.warning("worker.uncounted", error=type(exc).__name__)
            return
        here = self._board.alive() if self._board else 1
        share = min(1.0, here / max(everywhere, here, 1))
        if not math.isclose(share, self.pace.share):
            log.info("feishu.share", workers_here=here, workers=everywhere, share=round(share, 3))
        self.pace.share = share
