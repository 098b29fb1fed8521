"""What takes a request from what is known to a delivered reply; `bot.turn` is it."""

from __future__ import annotations

from typing import Protocol

from bot.answering.answering import Answering
from bot.answering.hearing import Heard
from bot.listening.turn_request import TurnRequest
from bot.queue.consumer import Lease
from bot.services import Services


class RequestHandler(Protocol):
    """`bot.turn.handle_request`, for rooms below it."""

    async def __call__(
        self,
        services: Services,
        request: TurnRequest,
        received_ms: int,
        *,
        answering: Answering | None = None,
        lease: Lease | None = None,
        heard: Heard | None = None,
    ) -> None: ...
