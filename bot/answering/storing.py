"""The answer as it is stored: the exact texts of its cards, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from bot.agents.prompts.shown_notes import with_shown
from bot.answering.composing import cards_of, voice_of
from bot.answering.question import Turn
from bot.answering.texts import say
from bot.files.writing import told_of
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply, marked
from bot.process.long_texts import computed
from bot.process.timing import stage
from bot.queue.jobs import Later
from bot.services import Services
from bot.text.languages import Language
from memory.models import StoredCard


async def store_reply(
    services: Services, turn: Turn, answer: Reply, reply_language: Language
) -> tuple[StoredCard, ...]:
    """Composes the exact card texts and stores them as pending, before anything is sent. Raises
    `Later` when something in the prompt was taken back: then the answer is made without it, and
    what its tools kept is undone."""
    cards = await _cards(services, turn, answer, reply_language)
    with stage("memory_save"):
        state, stored_cards = await services.store.record_reply(
            turn.context,
            turn_id=turn.id,
            cards=cards,
            tool_calls=with_shown(answer.tool_calls, answer.text),
            buttons=answer.buttons,
            files=[{"content": told_of(file), "file": file} for file in answer.files],
            visible_card=answer.foot.row() if answer.foot else None,
            source_ids=answer.given,
            means=answer.means,
        )
    if state == "open":
        await services.store.undo_kept(turn.context, turn.id)
        raise Later("what the answer was made with was taken back")
    return marked(stored_cards, answer.buttons)


async def _cards(
    services: Services, turn: Turn, answer: Reply, reply_language: Language
) -> Sequence[str]:
    if answer.unsaid or answer.cards:
        return answer.cards
    text, nothing = answer.text, say("nothing-to-say", reply_language)
    if turn.heard.decision.reason is Reason.BOT_LAST_ANSWER:
        text = f"{text.strip() or nothing}\n\n{say('last-to-bots', reply_language)}"
    voice = voice_of(services, turn, answer.auto_mention)
    return await computed(lambda: cards_of(text, voice, nothing=nothing), len(text))
