"""A voice message becomes a message with words, before anything else looks at it.

In a private chat each is recognised. In a group nobody can be mentioned in one, so it is heard like
a line without a mention, where the bot follows the talk.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog

from bot.answering.attachments import limits_of
from bot.answering.chat_state import follows
from bot.answering.question import Turn, language
from bot.answering.request_rate import asker_of
from bot.answering.texts import say
from bot.feishu.denials import is_refused
from bot.feishu.errors import Action, FeishuError, FeishuFailure, ResourceTooLarge
from bot.feishu.manifest import SPEECH
from bot.feishu.resources import Attachment
from bot.files.reading_slots import NoPlace
from bot.files.voice import MOST_BYTES, MOST_SECONDS, Pieces, convert
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.process.working_places import waiting
from bot.services import Services
from bot.text.languages import Language
from memory.models import OpenTurn
from memory.outcomes import refused

log = structlog.get_logger()

AUDIO = "audio"
_DENIAL = "recognise_speech"
_LOADED_WITHIN_S = 10.0
_RECOGNISED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Unheard:
    """Why a voice message has no words: long, damaged, busy, unavailable, unclear, scope, refused.
    `code` is Feishu's, of a refusal."""

    reason: str
    code: int = 0


async def with_words(
    services: Services, request: TurnRequest
) -> tuple[TurnRequest, Unheard | None]:
    """The message with what was said in it as its text; else as it is, and why."""
    written_message = request.written
    recordings = [one for one in request.attachments if one.kind == AUDIO]
    in_p2p = request.chat_type == "p2p"
    if written_message is None or not recordings or not (in_p2p or follows(services, request)):
        return request, None
    words = await words_of(services, request, request.message_id, recordings[0])
    if isinstance(words, Unheard):
        log.info("voice.unheard", reason=words.reason, code=words.code)
        return request, words
    written_message = replace(written_message, attachments=(), template=words)
    return replace(request, text=words, written=written_message), None


async def words_of(
    services: Services, request: TurnRequest, message_id: str, voice: Attachment
) -> str | Unheard:
    """What is said in a voice message of that id. `request` asks."""
    if (voice.duration_ms or 0) > MOST_SECONDS * 1000:
        return Unheard("long")
    try:
        if await is_refused(services.feishu, services.denials, _DENIAL):
            return Unheard("scope")
        pieces = await _pieces(services, request, message_id, voice)
        if not isinstance(pieces, Pieces):
            return Unheard(pieces)
        with waiting():
            async with asyncio.timeout(_RECOGNISED_WITHIN_S):
                texts = await asyncio.gather(*map(services.feishu.speech.recognise, pieces.pieces))
    except ResourceTooLarge:
        return Unheard("long")
    except (TimeoutError, FeishuFailure) as exc:
        return _failed(services, exc)
    services.denials.allow(_DENIAL)
    return " ".join(filter(None, texts)) or Unheard("unclear")


def not_heard(unheard: Unheard, reply_language: Language) -> str:
    """One sentence for who sent it, with what can be done."""
    minutes = MOST_SECONDS // 60
    return say(
        f"voice-{unheard.reason}",
        reply_language,
        minutes=minutes,
        scope=SPEECH,
        code=unheard.code,
    )


class SayingWhy:
    """Answers a voice message that has no words (`bot.answering.answering.Answering`)."""

    def __init__(self, unheard: Unheard) -> None:
        self._unheard = unheard

    async def __call__(self, services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
        text = not_heard(self._unheard, language(services, turn, open_turn))
        return Reply(text, means=refused("unreadable"))


async def _pieces(
    services: Services, request: TurnRequest, message_id: str, voice: Attachment
) -> Pieces | str:
    person = " ".join(asker_of(request))
    try:
        with waiting():
            async with services.files.place(person, request.chat_id, limits_of(services)):
                async with asyncio.timeout(_LOADED_WITHIN_S):
                    data = await services.feishu.download_resource(
                        message_id, voice.key, "file", MOST_BYTES
                    )
                return await convert(data)
    except NoPlace:
        return "busy"


def _failed(services: Services, exc: BaseException) -> Unheard:
    if not isinstance(exc, FeishuError):
        return Unheard("unavailable")
    if exc.action is Action.ALERT:
        services.denials.note(_DENIAL, "", exc)
        return Unheard("scope")
    return Unheard("unavailable" if exc.action.may_pass else "refused", exc.code)
