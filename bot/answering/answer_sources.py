"""Handles the messages that an answer rests on: cites them, rereads edited ones, and leaves out
hidden ones.

Feishu tells no app about an edit. While the model works, the messages that the answer will rest on
are read again; if one of them says something else now, its stored text is replaced and the question
is answered anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.agents.offline.facts import statement_in
from bot.agents.offline.small_talk import kind_sent
from bot.answering.question import Turn
from bot.answering.quoted_messages import fetched_messages
from bot.feishu.content import render_content
from bot.feishu.events import question_text
from bot.feishu.fields import Mention
from bot.feishu.models import RawMessage, message_text
from bot.listening.requests import is_question
from bot.listening.turn_request import TurnRequest
from bot.outbox.foot import RecalledSource, Where
from bot.services import Services
from bot.text.roster import Person
from memory.errors import StoreError
from memory.models import OpenTurn, StoredMessage, WorkingMemory
from memory.recall.changes import replacement_times
from memory.recall.passages import Passage, content_words
from memory.scope import AgentMemoryContext
from memory.tables.notes import note_source

log = structlog.get_logger()
_MOST = 3
_AGAIN_S = 60.0
_TYPED = frozenset({"text", "post"})


def spoken_here(here: AgentMemoryContext, open_turn: OpenTurn) -> list[Passage]:
    """What people said in the conversation of the prompt, as passages without an answer."""
    return [
        Passage(
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
        for one in open_turn.told[:-1]
        if one.role == "user" and one.message_id and not one.by_bot
    ]


def cited_sources(turn: Turn, passages: Sequence[Passage]) -> Iterator[RecalledSource]:
    """The sources below an answer, oldest first. Questions and requests are none. What a later
    statement replaced stands with that one."""
    statements = [one for one in passages if statement_in(one.question) or kind_sent(one.question)]
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
    until = replacement_times(passages)
    by_time = {one.asked_at: one.turn_id for one in passages}
    return {by_time[at]: old for old, at in until.items() if at in by_time}


def _said_where(here: AgentMemoryContext, passage: Passage) -> Where:
    if passage.conversation_id == here.conversation_id:
        return "thread"
    return "chat" if passage.chat_id == here.chat_id else "elsewhere"


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text with the mention keys still in it, and what they stand for."""

    mentions: tuple[Mention, ...]
    template: str


def to_reread(
    passages: Sequence[Passage],
    question: str,
    quoted_id: str,
    read_at: Mapping[str, float],
    now: float,
) -> list[str]:
    """Returns the message_ids to read again: what is quoted, and the newest statements on the
    matter. None that was read within the last minute. Pure."""
    words = content_words(question)
    on_matter = [
        one
        for one in passages
        if not one.source and not is_question(one.question) and words & content_words(one.question)
    ]
    newest = sorted(on_matter, key=lambda one: one.asked_at, reverse=True)
    message_ids = dict.fromkeys([quoted_id, *(one.turn_id for one in newest)])
    due = [one for one in message_ids if now - read_at.get(one, 0.0) >= _AGAIN_S]
    return [one for one in due if one.startswith("om_")][:_MOST]


async def find_edits(
    services: Services, turn: Turn, passages: Sequence[Passage], quoted_id: str
) -> bool:
    """Reads the messages again that the answer rests on, and stores what their authors changed.
    Returns whether any of them says something else now."""
    now, read_at = services.clock(), services.reread
    ids = to_reread(passages, turn.question, quoted_id, read_at, now)
    for old in [one for one, at in read_at.items() if now - at >= _AGAIN_S]:
        del read_at[old]
    read_at.update(dict.fromkeys(ids, now))
    replacements = [await _replace_if_edited(services, turn, one) for one in ids]
    return any(replacements)


async def edited_question(services: Services, request: TurnRequest, message_id: str) -> str:
    """The question of the message after its author's latest edit; "" if it was never edited."""
    raw = await _find_edit(services, request, message_id)
    bot = await services.own_person.look_up()
    return _question(raw, bot) if raw else ""


async def _find_edit(
    services: Services, request: TurnRequest, message_id: str
) -> RawMessage | None:
    """The message, if a person typed it in this chat and edited it. The audience of another chat is
    another matter."""
    if not message_id.startswith("om_"):
        return None
    raw = next(iter(await fetched_messages(services, request, message_id)), None)
    if raw is None or raw.chat_id != request.chat_id or raw.sender_type != "user":
        return None
    return raw if raw.edited and not raw.deleted and raw.message_type in _TYPED else None


def _question(raw: RawMessage, bot: Person) -> str:
    template = render_content(raw.message_type, raw.content, raw.mentions).template
    return question_text(EditedText(raw.mentions, template), bot.open_id)


async def _replace_if_edited(services: Services, turn: Turn, message_id: str) -> bool:
    raw = await _find_edit(services, turn.request, message_id)
    if raw is None:
        return False
    raw_words = message_text(raw, turn.names.known)
    question = _question(raw, turn.bot) or raw_words
    try:
        was_changed = await services.store.replace_message(
            message_id, raw.chat_id, question, raw_words, by_turn=turn.id
        )
    except StoreError as exc:
        log.warning("edit.not_stored", message_id=message_id, error=type(exc).__name__)
        return False
    if was_changed:
        log.info("edit.stored", message_id=message_id, turn_id=turn.id)
    return was_changed


def without_sources(open_turn: OpenTurn, hidden_ids: Collection[str]) -> OpenTurn:
    """`hidden_ids` are ids of messages, turns, notes and threads. The question stays. Facts stay
    out together: which of them comes from where is not told."""
    memory, summary = open_turn.working_memory, open_turn.summary
    return replace(
        open_turn,
        history=(*_without(open_turn.history[:-1], hidden_ids), *open_turn.history[-1:]),
        working_memory=WorkingMemory() if set(memory.turns) & set(hidden_ids) else memory,
        registry=tuple(
            one for one in open_turn.registry if note_source(str(one["id"])) not in hidden_ids
        ),
        summary=None if summary and summary.source in hidden_ids else summary,
    )


def _without(
    messages: Sequence[StoredMessage], hidden_ids: Collection[str]
) -> tuple[StoredMessage, ...]:
    """An answer that was shown under no id goes with the question before it."""
    kept_messages, question_id = list[StoredMessage](), ""
    for one in messages:
        question_id = one.message_id or "" if one.role == "user" else question_id
        if (one.message_id or question_id) not in hidden_ids:
            kept_messages.append(one)
    return tuple(kept_messages)
