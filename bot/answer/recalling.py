"""Earlier messages that may matter for a question, for its prompt."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from bot.agents.embedder import find
from bot.agents.recalled import told_passages
from bot.answer.question import Turn
from bot.services import Services
from bot.telemetry.timing import stage
from memory.errors import StoreError, StoreUnavailable
from memory.models import OpenTurn
from memory.recall.passages import Passage, RecallScope, needs_recall

log = structlog.get_logger()

_MOST = 5


async def recalled(
    services: Services, turn: Turn, opened: OpenTurn, told: Collection[str | None]
) -> str:
    """What was said earlier, where the question needs it: in this thread, and when it speaks of the
    past, in this chat (in p2p, where nobody else reads the answer, everywhere).

    `told` are the ids of the messages that the prompt has already.
    """
    scope = _scope(services, turn, opened)
    found = await _found(services, turn, opened, scope, _MOST + len(told)) if scope else ()
    earlier = [passage for passage in found if passage.turn_id not in told][:_MOST]
    return told_passages(earlier, turn.context, services.now(), turn.names.known, turn.names.label)


def _scope(services: Services, turn: Turn, opened: OpenTurn) -> RecallScope | None:
    """Where to search; None: nowhere."""
    window = [message.content for message in opened.told[:-1]]
    now = services.now()
    if turn.private and not opened.degraded:
        return "everywhere"
    if opened.degraded or not needs_recall(turn.question, window, now):
        return None
    if needs_recall(turn.question, [turn.question], now):  # it speaks of the past
        return "chat" if turn.in_group else "everywhere"
    is_whole_thread = len(opened.history) < services.settings.history_messages
    return None if is_whole_thread else "thread"


async def _found(
    services: Services, turn: Turn, opened: OpenTurn, scope: RecallScope, k: int
) -> tuple[Passage, ...]:
    try:
        with stage("recall"):
            return await find(
                services.store,
                services.embedder,
                turn.context,
                turn.question,
                now=services.now(),
                scope=scope,
                k=k,
                before_id=opened.history[0].id if opened.history else None,
            )
    except StoreError as exc:
        event = "recall.unavailable" if isinstance(exc, StoreUnavailable) else "recall.refused"
        log.warning(event, turn_id=turn.id, error=type(exc).__name__, code=exc.code)
        return ()
