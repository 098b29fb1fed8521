"""A turn that can be stopped while its answer is made."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from bot.agents.running_turns import Stop
from bot.answering.question import Turn
from bot.services import Services
from memory.models import OpenTurn


@contextlib.asynccontextmanager
async def stoppable(services: Services, turn: Turn, open_turn: OpenTurn) -> AsyncIterator[Stop]:
    """While it is entered the turn can be stopped; it may have been before a crash."""
    with services.stops.watching(turn.id) as stop:
        if open_turn.attempts > 1 and services.is_stopped and await services.is_stopped(turn.id):
            stop.ask()
        yield stop
