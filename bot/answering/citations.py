"""The messages that an answer names as its sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bot.agents.offline.facts import stated
from bot.agents.offline.small_talk import kind_sent
from bot.answering.question import Turn
from bot.outbox.foot import RecalledSource, Where
from memory.models import OpenTurn
from memory.recall.changes import replaced
from memory.recall.passages import Passage
from memory.scope import AgentMemoryContext


def spoken_here(here: AgentMemoryContext, open_turn: OpenTurn) -> Iterator[Passage]:
    """What people said in the conversation of the prompt, as passages without an answer."""
    for one in open_turn.told[:-1]:
        if one.role == "user" and one.message_id and not one.by_bot:
            yield Passage(
                one.message_id,
                0,
                here.conversation_id,
                here.chat_id,
                one.created_at,
                one.actor_id,
                one.actor_name,
                one.content,
                "",
            )


def cited(turn: Turn, passages: Sequence[Passage]) -> Iterator[RecalledSource]:
    """The sources below an answer, oldest first. Questions and requests are none. What a later
    statement replaced stands with that one."""
    statements = [one for one in passages if stated(one.question) or kind_sent(one.question)]
    before = _replaced_by(statements)
    for one in statements:
        if one.turn_id in before.values():
            continue
        older = next((old for old in statements if before.get(one.turn_id) == old.turn_id), None)
        yield RecalledSource(
            one.asked_at,
            _said_where(turn.context, one),
            one.feishu_id or one.turn_id,
            (older.feishu_id or older.turn_id) if older else "",
            turn.names.label(one.actor_id or "", one.actor_name),
            one.question,
            older.question if older else "",
            one.chat_id,
            one.position,
        )


def _replaced_by(passages: Sequence[Passage]) -> Mapping[str, str]:
    """turn_id of a passage → that of the last one that it replaced."""
    until = replaced(passages)
    by_time = {one.asked_at: one.turn_id for one in passages}
    return {by_time[at]: old for old, at in until.items() if at in by_time}


def _said_where(here: AgentMemoryContext, passage: Passage) -> Where:
    if passage.conversation_id == here.conversation_id:
        return "thread"
    return "chat" if passage.chat_id == here.chat_id else "elsewhere"
