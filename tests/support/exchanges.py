"""Whole turns for tests: a question, and the answer as it was stored and sent."""

from __future__ import annotations

from collections.abc import Sequence

from memory.models import ANSWERED_OUTCOME, MESSAGE_ORIGIN, OpenTurn, Origin, TurnOutcome
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore


def texts(turn: OpenTurn) -> list[str]:
    """What the model would see, oldest first."""
    return [message.content for message in turn.history]


async def exchange(
    memory: MemoryStore,
    context: AgentMemoryContext,
    question: str,
    *answer: str,
    origin: Origin = MESSAGE_ORIGIN,
    means: TurnOutcome = ANSWERED_OUTCOME,
) -> None:
    """Asks `question` and delivers `answer`, one card each; the ids are made from the question, or
    the `origin`."""
    asked = f"om_{question}_{context.chat_id}"
    turn_id = asked if origin is MESSAGE_ORIGIN else origin.turn_id
    await memory.begin_turn(context, turn_id=turn_id, content=question, origin=origin)
    await memory.record_reply(context, turn_id=turn_id, cards=answer, means=means)
    await deliver(memory, context, turn_id, answer)


async def deliver(
    memory: MemoryStore, context: AgentMemoryContext, turn_id: str, answer: Sequence[str]
) -> None:
    """Marks every card of `answer` as sent."""
    for chunk, content in enumerate(answer):
        await memory.mark_sent(
            context,
            turn_id=turn_id,
            chunk=chunk,
            content=content,
            message_id=f"{turn_id}_card{chunk}",
        )
