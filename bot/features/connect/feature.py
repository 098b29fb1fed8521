"""Lets a person connect or disconnect their Feishu account, offers it after an answer that needed
it, and handles revoked tokens.

The link is sent to the person alone and is never stored in a history."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import structlog

from bot.answering.reply import EndedTurn
from bot.features import commands as command_texts
from bot.features.connect import connection_steps
from bot.features.connect.connection_steps import handle_connect, queue_step, tend_user_tokens
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.private_answers.feature import tell_asker, tell_asker_text
from bot.feishu.authorization import NotGranted
from bot.feishu.errors import FeishuFailure
from bot.feishu.events import TOKEN_REVOKED, Envelope, MalformedEvent
from bot.feishu.fields import as_text
from bot.feishu.user_scopes import DOCUMENTS, OFFLINE
from bot.hooks import FeatureTurn, PressTurn
from bot.outbox.buttons import Reply, decision_button
from bot.outbox.delivery import Aside, Undeliverable
from bot.outbox.sending import send_notice
from bot.people.personal_access import PersonalAccess
from bot.queue.consumer import Lease
from bot.queue.jobs import CONNECT_TASK
from bot.services import Services
from bot.text.slash_commands import OFF_WORDS
from memory.errors import StoreError
from memory.models import ANSWERED_ELSEWHERE, apology_outcome
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.tables.cards import NewButton, new_button_id
from memory.tables.user_tokens import Ask, AskPlace, Connection, DeviceCode, WaitingAnswer

log = structlog.get_logger()
DISCONNECT = "connect.disconnect"

_MOST_WAITING = 5  # as `note_user_ask` keeps

# beside: the link stands where they asked; in_p2p: elsewhere. The others say why there is none.
AskOutcome = Literal["beside", "in_p2p", "not-now", "app-may-not", "not-sent-privately"]


async def answer_connect_command(services: Services, command_turn: CommandTurn) -> Reply:
    """The link, or what is granted. Raises `StoreUnavailable`."""
    language, access = command_turn.language, services.access
    if access is None:
        return Reply(connection_steps.say("not-offered", language))
    if command_turn.context.actor_tenant:
        return Reply(connection_steps.say("guest", language))
    if command_turn.open_turn.degraded:
        means = apology_outcome("memory_away")
        return Reply(command_texts.say("memory-away", language), means=means)
    connection = await access.store.get(_person(command_turn.context))
    if command_turn.command.argument in OFF_WORDS:
        return await _disconnect_at_once(services, access, command_turn)
    if connection and _has_all(connection):
        return await tell_asker(
            services, command_turn, partial(_connection_reply, services, connection)
        )
    return await _ask_for_documents(services, access, command_turn)


async def _disconnect_at_once(
    services: Services, access: PersonalAccess, command_turn: CommandTurn
) -> Reply:
    was_connected = await access.store.disconnect(_person(command_turn.context))
    log.info("connect.disconnected", ended=was_connected)
    text = connection_steps.say(
        "disconnected" if was_connected else "not-connected", command_turn.language
    )
    return await tell_asker_text(services, command_turn, text)


async def press_disconnect(services: Services, here: PressTurn) -> Reply:
    """Ends what whoever pressed has granted; doing it again changes nothing. Raises
    `StoreUnavailable`."""
    if services.access is not None:
        was_connected = await services.access.store.disconnect(_person(here.context))
        log.info("connect.disconnected", ended=was_connected)
    return Reply(connection_steps.say("disconnected", here.language), forgets=True)


async def _ask_for_documents(
    services: Services, access: PersonalAccess, command_turn: CommandTurn
) -> Reply:
    context, language, request = (
        command_turn.context,
        command_turn.language,
        command_turn.turn.request,
    )
    in_p2p = command_turn.chat_type == "p2p"
    beside_group = "" if in_p2p or request.in_thread else context.chat_id
    place = AskPlace(context.chat_id, command_turn.chat_type, language, beside_group)
    person = _person(context)
    outcome = await ask_for_access(services, access, person, command_turn.turn_id, place, DOCUMENTS)
    if outcome == "beside":
        return Reply("", unsaid=True, means=ANSWERED_ELSEWHERE)
    return Reply(
        connection_steps.say("sent-privately" if outcome == "in_p2p" else outcome, language)
    )


def _has_all(connection: Connection) -> bool:
    return connection.granted_ms is not None and set(DOCUMENTS) <= set(connection.scopes)


async def _connection_reply(services: Services, connection: Connection, here: FeatureTurn) -> Reply:
    granted_at = services.at((connection.granted_ms or 0) / 1000)
    text = connection_steps.granted_text(
        connection.scopes, granted_at, services.now(), here.language
    )
    return Reply(text, (_disconnect(here),))


def _disconnect(here: FeatureTurn) -> NewButton:
    payload = {"tool": DISCONNECT, "arguments": {}, "description": ""}
    if here.beside:
        payload["beside"] = here.beside
    return decision_button(
        connection_steps.say("disconnect", here.language),
        payload,
        "confirm",
        group_id=new_button_id(),
        chat_type="p2p",
        language=here.language,
        danger=True,
    )


def _person(context: AgentMemoryContext) -> FeishuPerson:
    return FeishuPerson(context.tenant_key, context.actor_id)


async def offer_access(services: Services, ended_turn: EndedTurn) -> None:
    """Shows the asker the link for what their question needed: reading documents, or some scopes.
    Once they grant it, the question is asked again. Never raises: `/connect` and asking again do
    the same."""
    turn, language, answer_id = ended_turn.turn, ended_turn.language, ended_turn.answer_id
    is_unconnected, wanted_scopes = ended_turn.needs.unconnected, ended_turn.needs.scopes
    access, context = services.access, turn.context
    if access is None or context.actor_tenant or not (is_unconnected or wanted_scopes):
        return
    scopes = DOCUMENTS if is_unconnected else tuple(dict.fromkeys((OFFLINE, *wanted_scopes)))
    person = FeishuPerson(context.tenant_key, context.actor_id)
    beside = context.chat_id if turn.in_group and not turn.request.in_thread else ""
    waiting_answer = WaitingAnswer(context.chat_id, answer_id, turn.request.words_ms)
    waiting = (waiting_answer,) if answer_id else ()
    place = AskPlace(context.chat_id, turn.chat_type, language, beside, waiting)
    try:
        connection = await access.store.get(person)
        if connection and connection.granted_ms and is_unconnected:
            return
        if waiting_ask := _waits_for(connection, scopes):
            for answer in waiting:
                await access.store.note_waiting(person, waiting_ask.id, answer)
            if not _is_shown_in(context.chat_id, waiting_ask):
                await _show_link(services, access, person, turn.id, place, waiting_ask)
            return
        outcome = await ask_for_access(services, access, person, turn.id, place, scopes)
    except StoreError as exc:
        log.warning("connect.not_offered", error=type(exc).__name__)
        return
    log.info("connect.offered", outcome=outcome)


def _waits_for(connection: Connection | None, scopes: tuple[str, ...]) -> Ask | None:
    """The link for all of it that waits for them already."""
    ask = connection.ask if connection else None
    is_for_all = ask and not ask.outcome and set(scopes) <= set(ask.scopes)
    return ask if is_for_all else None


def _is_shown_in(chat_id: str, ask: Ask) -> bool:
    """Whether the link stands there: it is shown in each chat where an answer waits for it."""
    return chat_id in {ask.place.chat_id, *(one.chat_id for one in ask.place.waiting)}


async def _show_link(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    turn_id: str,
    place: AskPlace,
    ask: Ask,
) -> None:
    """Shows the link that waits elsewhere in this place too. Raises `StoreError`."""
    device = await access.store.device(person, ask)
    minutes = max(int(ask.until_ms / 1000 - services.clock()) // 60, 1)
    if device is None:
        return
    notice = connection_steps.access_request(ask.scopes, device.link, minutes, place.language)
    aside = Aside(person.open_id, place.beside)
    try:
        await send_notice(services, aside, notice, key=f"connect:{turn_id}")
    except Undeliverable as exc:
        log.warning("connect.not_shown", reason=exc.reason)
    except FeishuFailure as exc:
        log.warning("connect.not_shown", reason=type(exc).__name__)


async def ask_for_access(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    ask_id: str,
    place: AskPlace,
    scopes: tuple[str, ...],
) -> AskOutcome:
    """Shows the link for `scopes` and queues the look at what comes of it. After a crash it is the
    same link. Raises `StoreError`."""
    try:
        device, life_s, interval_s = await _device(services, access, person, ask_id, place, scopes)
        minutes = max(life_s // 60, 1)
        delivery = await send_notice(
            services,
            Aside(person.open_id, place.beside),
            connection_steps.access_request(scopes, device.link, minutes, place.language),
            key=f"connect:{ask_id}",
        )
    except NotGranted as exc:
        log.warning("connect.not_begun", kind=exc.kind, code=exc.code)
        return "not-now" if exc.kind == "later" else "app-may-not"
    except Undeliverable as exc:
        log.warning("connect.not_shown", reason=exc.reason)
        return "not-sent-privately"
    except FeishuFailure as exc:
        log.warning("connect.not_begun", error=type(exc).__name__)
        return "not-now"
    await access.store.note_card(person, ask_id, delivery.message_id, aside=delivery.aside)
    await queue_step(services, person, interval_s)
    log.info("connect.asked", aside=delivery.aside)
    return "beside" if delivery.aside or place.chat_type == "p2p" else "in_p2p"


async def _device(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    ask_id: str,
    place: AskPlace,
    scopes: tuple[str, ...],
) -> tuple[DeviceCode, int, int]:
    """The link, how long it is valid and how often to look, in seconds."""
    connection = await access.store.get(person)
    if connection and connection.ask and connection.ask.id == ask_id and not connection.ask.outcome:
        left_s = int(connection.ask.until_ms / 1000 - services.clock())
        if device := await access.store.device(person, connection.ask):
            return device, max(left_s, 0), connection.ask.interval_s
    if (
        connection
        and connection.ask
        and not connection.ask.outcome
        and set(connection.ask.scopes) <= set(scopes)
    ):
        place = replace(
            place, waiting=(*connection.ask.place.waiting, *place.waiting)[-_MOST_WAITING:]
        )
    link = await access.authorization.begin(scopes)
    device = DeviceCode(link.device_code, link.link)
    await access.store.ask(
        person,
        ask_id,
        scopes=scopes,
        device=device,
        life_s=link.life_s,
        interval_s=link.interval_s,
        place=place,
    )
    return device, link.life_s, link.interval_s


async def handle_revocation(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    """Ends what was granted until the event. Raises `StoreError`, and MalformedEvent without a
    person."""
    open_id = as_text(envelope.event.get("open_id"))
    if not open_id:
        raise MalformedEvent("The event has no open_id; check the event's version in the console.")
    if services.access is None:
        return
    person = FeishuPerson(envelope.tenant_key, open_id)
    at_ms = envelope.create_time_ms or received_ms
    was_connected = await services.access.store.disconnect(person, before_ms=at_ms)
    log.info("connect.revoked", ended=was_connected)


CONNECT = Feature(
    name="connect",
    commands=(
        CommandSpec(
            words=("connect", "连接"),
            run=answer_connect_command,
            help=(
                HelpLine(
                    "`/connect`: let me use documents, your calendar and your tasks on your "
                    "behalf, or revoke that",
                    "`/连接`：让我以你的身份使用文档、日历和任务；也可以断开",
                    lambda here: here.connects,
                ),
            ),
            personal=True,
        ),
    ),
    presses={DISCONNECT: press_disconnect},
    settings=frozenset({"user_token_key"}),
    after=offer_access,
    events={TOKEN_REVOKED: handle_revocation},
    jobs={CONNECT_TASK: handle_connect},
    tending=(tend_user_tokens,),
)
