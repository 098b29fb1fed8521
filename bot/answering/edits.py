"""Messages that their authors edited after the bot had read them.

Feishu tells no app about an edit. While the model works, the messages that the answer will rest on
are read again; if one of them says something else now, its stored text is replaced and the question
is answered anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from bot.answering.question import Turn
from bot.answering.question_source import fetched
from bot.feishu.content import render_content
from bot.feishu.events import question_text
from bot.feishu.mention_keys import Mention
from bot.feishu.models import RawMessage
from bot.feishu.received import raw_text
from bot.listening.questions import is_question
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from bot.text.roster import Person
from memory.errors import StoreError
from memory.recall.passages import Passage, content_words

log = structlog.get_logger()

_MOST = 3
_AGAIN_S = 60.0
_TYPED = frozenset({"text", "post"})


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
    replacements = [await _replaced(services, turn, one) for one in ids]
    return any(replacements)


async def edited_question(services: Services, request: TurnRequest, message_id: str) -> str:
    """The question of the message after its author's latest edit; "" if it was never edited."""
    raw = await _edited(services, request, message_id)
    bot = await services.own_person.look_up()
    return _question(raw, bot) if raw else ""


async def _edited(services: Services, request: TurnRequest, message_id: str) -> RawMessage | None:
    """The message, if a person typed it in this chat and edited it. The audience of another chat is
    another matter."""
    if not message_id.startswith("om_"):
        return None
    raw = next(iter(await fetched(services, request, message_id)), None)
    if raw is None or raw.chat_id != request.chat_id or raw.sender_type != "user":
        return None
    return raw if raw.edited and not raw.deleted and raw.message_type in _TYPED else None


def _question(raw: RawMessage, bot: Person) -> str:
    template = render_content(raw.message_type, raw.content, raw.mentions).template
    return question_text(EditedText(raw.mentions, template), bot.open_id)


async def _replaced(services: Services, turn: Turn, message_id: str) -> bool:
    raw = await _edited(services, turn.request, message_id)
    if raw is None:
        return False
    raw_words = raw_text(raw, turn.names.known)
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
