"""How much of what a person asks for is carried out: `REQUESTS_PER_MINUTE`.

What is over it is skipped. The person is told once, until what they may ask for is full again, so a
flood of messages is not answered by a flood of cards. What ends an answer is never skipped.
"""

from __future__ import annotations

from dataclasses import replace

from bot.answering.plain_stop import is_answering
from bot.answering.texts import say
from bot.conversation import Judge
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.turn_request import TurnRequest
from bot.queue.person_rates import Asker
from bot.services import Services
from bot.text.languages import Language
from bot.text.slash_commands import CommandName, parse


def asker_of(request: TurnRequest) -> Asker:
    return Asker(request.tenant_key, request.sender_open_id)


def judge_of(services: Services, request: TurnRequest, asked_at_s: float | None) -> Judge | None:
    """The judge model, as long as listening to the sender leaves enough for their questions."""
    if asked_at_s is None or services.rates.has_plenty(asker_of(request), asked_at_s):
        return services.judge
    return None


async def within_rate(
    services: Services,
    request: TurnRequest,
    message: IncomingMessage,
    question: str,
    decision: Decision,
    asked_at_s: float | None,
) -> Decision:
    """The decision as it stands within the sender's rate. Over it, the bot only says so, once."""
    if asked_at_s is None or message.is_bot:
        return decision
    rates, asker = services.rates, asker_of(request)
    if decision.judge_ms is not None:
        rates.count(asker, asked_at_s)
    if not decision.respond or rates.take(asker, asked_at_s):
        return decision
    if await _ends_an_answer(services, request, message, question):
        return decision
    first = rates.is_first_refusal(asker, asked_at_s)
    tells = bool(first and services.tells_of_rate and await services.tells_of_rate(asker))
    return replace(decision, respond=tells, reason=Reason.RATE_LIMITED)


def is_stop(question: str) -> bool:
    """Whether it is to end an answer."""
    command = parse(question)
    return command is not None and command.name is CommandName.STOP


def too_many(services: Services, language: Language) -> str:
    """What the person is told."""
    rates = services.rates
    return say("too-many-requests", language, at_once=rates.at_once, limit=rates.per_minute)


async def _ends_an_answer(
    services: Services, request: TurnRequest, message: IncomingMessage, question: str
) -> bool:
    return is_stop(question) and await is_answering(services, request, message.author_id)
