"""While an answer is made for a group: did who asked tell the bot elsewhere what may help?

The answer knows nothing of it and does not wait: the model is being waited for anyway. Only where
something is about the question, or nobody could tell in time, a job of its own compares it with
the answer and offers it (`bot.features.private_answers.offering`); most questions cost no job.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import structlog

from bot.answering.question import Turn
from bot.features.private_answers.comparing import helps
from bot.features.private_answers.offering import Asked, asked_of, queued
from bot.services import Services
from memory.errors import StoreError
from memory.models import OpenTurn
from memory.outcomes import ANSWERED, TurnOutcome
from memory.rpc import Statement
from memory.tables.private import PrivateStore

log = structlog.get_logger()


class Looking:
    """One turn's look; it ends with the `with` block."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asked: Asked | None = None
        self._task: asyncio.Task[bool] | None = None
        self._means = ANSWERED
        self._withheld = False
        self._asking: Asked | None = None  # where a document is offered

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._task:
            self._task.cancel()

    def begin(self, turn: Turn, open_turn: OpenTurn) -> None:
        """Looks in the background, if the turn is one that anything is offered after. What was
        answered before and is only sent now is left to the job."""
        self._asking = asked_of(self._services, turn, open_turn, document=True)
        self._asked = asked_of(self._services, turn, open_turn)
        if self._asked and open_turn.state == "open":
            self._task = asyncio.create_task(self._helps(self._asked, turn.question))

    def ends(self, means: TurnOutcome) -> None:
        """How the turn ends: nothing is offered beside an apology, a refusal or a command."""
        self._means = means

    def found(self, *, withheld: bool) -> None:
        """What the answer was not told of: a document that the person alone may be told of."""
        self._withheld = withheld

    def after(self) -> Statement | None:
        """What queues the job; None where there is nothing to offer."""
        if self._means != ANSWERED:
            return None
        if self._withheld and self._asking:
            return queued(self._asking)
        if self._asked is None:
            return None
        is_known = self._task is not None and self._task.done() and not self._task.cancelled()
        nothing = is_known and self._task is not None and not self._task.result()
        return None if nothing else queued(self._asked)

    async def _helps(self, lookup: Asked, question: str) -> bool:
        private, chat_id = PrivateStore(self._services.rpc), lookup.group.chat_id
        try:
            return await helps(private, lookup.own_place, question, asked_in=chat_id)
        except StoreError as exc:
            log.info("private.not_looked", turn_id=lookup.turn_id, error=type(exc).__name__)
            return True  # as far as anybody knows: the job looks again
