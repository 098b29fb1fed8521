"""The next step for a person's own tokens, as a job that may be killed at any moment: look whether
they have approved, tell them the outcome, answer what waited for it, tell them that it has ended.
Holds what people read about it.

The outcome is stored before the person is told, and they are told until that is noted there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime
from typing import Literal

import structlog

from bot.features.private_answers.feature import take_away
from bot.feishu import cards
from bot.feishu.authorization import NotGranted
from bot.feishu.errors import FeishuError, FeishuFailure, Unreachable
from bot.feishu.user_scopes import WRITING, missing_scopes, purposes_of
from bot.hooks import FeatureJob
from bot.outbox.delivery import Aside, Undeliverable
from bot.outbox.sending import send_notice
from bot.people.personal_access import PersonalAccess
from bot.queue.consumer import Lease
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list
from memory.errors import StoreError, StoreUnavailable
from memory.scope import FeishuPerson
from memory.tables.cards import HandleTouch
from memory.tables.user_tokens import Ask, Connection, GrantEnd, Outcome, RefreshTurn, TokenPair

log = structlog.get_logger()

_SLOWER_BY_S = 5  # RFC 8628, 3.5
_TRIES = 3
_TEND_EVERY_S = 20.0


# Asks the question of an answer again for the person of the touch. Doing it twice asks it once.
AskAgain = Callable[..., Awaitable[None]]


async def handle_connect(services: Services, job: FeatureJob) -> None:
    """Does what is next. Raises `StoreError` and, where a card could not be sent,
    `FeishuFailure`."""
    lease, ask_again = job.lease, job.ask_again
    access, args = services.access, lease.job.args
    if access is None:
        return
    person = FeishuPerson(args["tenant_key"], args["user_id"])
    if args.get("why") == "stale":
        await _give_up_stale(access, person)
    connection = await access.store.get(person)
    if connection is None:
        return
    if connection.ended:
        await _tell_ending(services, access, person, connection, lease)
    if connection.ask and not connection.ask.outcome:
        outcome = await _look(services, access, person, connection.ask)
        if outcome is not None:
            await _tell_outcome(services, access, person, connection.ask, outcome, lease, ask_again)
    elif connection.ask and connection.ask.outcome:
        await _tell_outcome(
            services, access, person, connection.ask, connection.ask.outcome, lease, ask_again
        )
    elif connection.granted_ms and args.get("why") == "key":
        is_resealed = await access.store.reseal(person, connection)
        log.info("connect.resealed", done=is_resealed)


async def _give_up_stale(access: PersonalAccess, person: FeishuPerson) -> None:
    """Whoever refreshed is gone: the database ends the grant, unless it was only slow."""
    holder = secrets.token_hex(8)
    access_turn = await access.store.use(person, holder)
    if isinstance(access_turn, RefreshTurn) and access_turn.refresh:
        await access.store.end_refresh(person, holder, "")


async def _look(
    services: Services, access: PersonalAccess, person: FeishuPerson, ask: Ask
) -> Outcome | None:
    """Asks Feishu whether they have decided, and looks again later where they have not. None:
    nothing came of it yet, or it is not asked for any more."""
    wait_s = ask.interval_s
    outcome = await _outcome(services, access, person, ask)
    if outcome == "slow_down":
        wait_s += _SLOWER_BY_S
        await access.store.note_interval(person, ask.id, wait_s)
    if outcome == "pending" or outcome == "slow_down":
        await queue_step(services, person, wait_s)
        return None
    if outcome is not None:
        log.info("connect.answered", outcome=outcome)
    return outcome


async def _outcome(
    services: Services, access: PersonalAccess, person: FeishuPerson, ask: Ask
) -> Outcome | Literal["pending", "slow_down"] | None:
    """What came of it; pending or slow_down: nothing yet; None: it is not asked for any more."""
    device = await access.store.device(person, ask)
    if device is None:
        return await _refuse(access, person, ask, "failed")
    try:
        pair = await access.authorization.poll(device.code)
    except NotGranted as exc:
        if exc.kind in ("pending", "slow_down", "later"):
            if services.clock() * 1000 > ask.until_ms:
                return await _refuse(access, person, ask, "expired")
            return "pending" if exc.kind == "pending" else "slow_down"
        log.info("connect.not_granted", kind=exc.kind, code=exc.code)
        outcome: Outcome = exc.kind if exc.kind in ("denied", "expired") else "failed"
        return await _refuse(access, person, ask, outcome)
    except Unreachable as exc:
        log.info("connect.not_looked", error=type(exc).__name__)
        return "slow_down"
    return await _keep(access, person, ask, pair)


async def _keep(
    access: PersonalAccess, person: FeishuPerson, ask: Ask, pair: TokenPair
) -> Outcome | None:
    """Keeps the tokens if it was the person who approved."""
    for attempt in range(_TRIES):
        try:
            who = await access.authorization.who(pair.access)
            break
        except FeishuFailure as exc:
            log.warning("connect.who_unknown", error=type(exc).__name__, attempt=attempt + 1)
    else:
        return await _refuse(access, person, ask, "failed")
    if who != person.open_id:
        log.warning("connect.somebody_else")
        return await _refuse(access, person, ask, "somebody_else")
    return "connected" if await access.store.connect(person, ask.id, pair) else None


async def _refuse(
    access: PersonalAccess, person: FeishuPerson, ask: Ask, outcome: Outcome
) -> Outcome | None:
    return outcome if await access.store.answer(person, ask.id, outcome) else None


async def _tell_outcome(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    ask: Ask,
    outcome: Outcome,
    lease: Lease,
    ask_again: AskAgain,
) -> None:
    """Tells the person the outcome. If they granted every scope, the bot asks the waiting questions
    again for them."""
    connection = await access.store.get(person)
    scopes = connection.scopes if connection else ()
    if connection and connection.ask and connection.ask.id == ask.id:
        ask = connection.ask  # another question may have joined while Feishu was asked
    all_allowed = outcome == "connected" and allows_all(ask.scopes, scopes)
    waiting = ask.place.waiting if all_allowed else ()
    text = outcome_text(outcome, scopes, ask.place.language, ask.scopes, goes_on=bool(waiting))
    await _tell_answer(services, person, ask, text, lease)
    for answer in waiting:
        card = (answer.chat_id, answer.message_id)
        touch = HandleTouch("again", *card, person.open_id, person.tenant_key)
        now_ms = int(services.clock() * 1000)
        await ask_again(services, touch, now_ms, lease, asked_ms=answer.asked_ms)
    await access.store.close_ask(person, ask.id)


async def _tell_answer(
    services: Services, person: FeishuPerson, ask: Ask, text: str, lease: Lease
) -> None:
    """On the card with the link, which goes; beside a group such a card cannot be changed."""
    if not ask.card or ask.aside or not await _patch_card(services, ask.card, text):
        beside_group = ask.place.beside if ask.aside else ""
        await _notify(
            services,
            person,
            text,
            key=f"connected:{ask.id}",
            lease=lease,
            beside_group=beside_group,
        )
        if ask.card and ask.aside:
            await take_away(services, ask.card)


async def _patch_card(services: Services, card: str, text: str) -> bool:
    """Whether the card shows the text now. Raises `FeishuFailure` where another attempt helps."""
    try:
        await services.feishu.patch_card(card, cards.card_content(cards.answer_card(text)))
    except FeishuError as exc:
        if exc.action.may_pass:
            raise
        log.info("connect.card_stays", code=exc.code)
        return False
    return True


async def _tell_ending(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    connection: Connection,
    lease: Lease,
) -> None:
    language = await _language(services, connection)
    text = ending_text(connection.ended, language)
    await _notify(
        services, person, text, key=f"ended:{person.open_id}:{connection.ended_ms}", lease=lease
    )
    await access.store.note_told(person)
    log.info("connect.ending_told", ended=connection.ended)


async def _language(services: Services, connection: Connection) -> Language:
    return connection.language or ("en" if "larksuite" in services.settings.domain else "zh")


async def _notify(
    services: Services,
    person: FeishuPerson,
    text: str,
    *,
    key: str,
    lease: Lease,
    beside_group: str = "",
) -> None:
    """To them alone. Whoever does not take messages of ours finds it in `/connect`."""
    try:
        await send_notice(services, Aside(person.open_id, beside_group), text, key=key, lease=lease)
    except Undeliverable as exc:
        log.warning("connect.not_told", reason=exc.reason)
    except FeishuError as exc:
        if exc.action.may_pass:
            raise
        log.warning("connect.not_told", code=exc.code)
    lease.unsure = False


async def queue_step(services: Services, person: FeishuPerson, wait_s: float = 0.0) -> None:
    """What is next for them. Where the queue is away the maintenance does it within a minute."""
    if services.queue_connect is None:
        return
    try:
        await services.queue_connect(person, wait_s)
    except QueueUnavailable as exc:
        log.warning("connect.not_queued", error=str(exc))


async def tend_user_tokens(services: Services, table: JobTable) -> None:
    """Every 20 s, queues the steps that a worker which died left unqueued."""
    while services.access is not None:
        await queue_owed_tokens(services, table)
        await asyncio.sleep(_TEND_EVERY_S)


async def queue_owed_tokens(services: Services, table: JobTable) -> int:
    """Queues a step for each person who has none. Returns how many. Never raises."""
    queue_count = 0
    if services.access is None:
        return queue_count
    try:
        for one in await services.access.store.to_tend():
            queue_count += await table.queue_connect(one.person, why=one.why, if_idle=True)
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("user_tokens.away", error=type(exc).__name__)
    except StoreError as exc:
        log.error("user_tokens.refused", error=type(exc).__name__, code=exc.code)
    return queue_count


say = Catalogue(__file__).say


def access_request(scopes: Collection[str], link: str, minutes: int, language: Language) -> str:
    """What is asked for, with the link to grant it."""
    purposes = set(purposes_of(scopes))
    of_documents = "read-documents" in purposes
    writes = not purposes.isdisjoint(WRITING)
    return "\n\n".join(
        (
            say("ask" if of_documents else "ask-more", language),
            _purpose_list(scopes, language),
            say("ask-link", language, link=link, n=minutes),
            say("ask-limits-writing" if writes else "ask-limits", language),
        )
    )


def granted_text(
    scopes: Collection[str], granted_at: datetime, now: datetime, language: Language
) -> str:
    """What is granted, and since when."""
    when = times.day_text(granted_at, language, now=now)
    return "\n\n".join(
        (
            say("granted-since", language, day=when),
            _purpose_list(scopes, language),
            say("use", language),
        )
    )


def outcome_text(
    outcome: Outcome,
    scopes: Collection[str],
    language: Language,
    asked_scopes: Collection[str] = (),
    *,
    goes_on: bool = False,
) -> str:
    """What came of asking for `asked_scopes`. `scopes`: what is granted now, also by what they
    granted before. `goes_on`: what they asked is answered now."""
    if outcome != "connected":
        return say(f"more-{outcome}" if scopes else f"outcome-{outcome}", language)
    if refused_purposes := _refused_purposes_of(asked_scopes, scopes):
        return "\n\n".join(
            (
                say("outcome-connected", language),
                _purpose_list(scopes, language),
                say("not-allowed", language, purposes=_in_one(refused_purposes, language)),
                say("use", language),
            )
        )
    now = (say("answers-now", language),) if goes_on else ()
    parts = (
        say("outcome-connected", language),
        _purpose_list(scopes, language),
        say("use", language),
    )
    return "\n\n".join((*parts, *now))


def allows_all(asked_scopes: Collection[str], granted_scopes: Collection[str]) -> bool:
    """Whether they allowed everything that they were asked for."""
    return not _refused_purposes_of(asked_scopes, granted_scopes)


def ending_text(why: GrantEnd | Literal[""], language: Language) -> str:
    """Why the bot may no longer act as the person."""
    return say(f"ended-{why}", language) if why else say("not-connected", language)


def _refused_purposes_of(
    asked_scopes: Collection[str], granted_scopes: Collection[str]
) -> list[str]:
    """The purposes that they were asked for and did not allow."""
    return [one for one in purposes_of(asked_scopes) if missing_scopes((one,), granted_scopes)]


def _in_one(purposes: Collection[str], language: Language) -> str:
    """Purposes in one sentence."""
    return join_list((say(f"purpose-{one}", language) for one in purposes), language)


def _purpose_list(scopes: Collection[str], language: Language) -> str:
    purposes = purposes_of(scopes)
    if not purposes:
        return say("nothing-granted", language)
    return "\n".join(f"- {say(f'purpose-{one}', language)}" for one in purposes)
