"""Asks a person to let the bot act as them, by a link that they alone see. What is said here is not
stored: a link belongs into nobody's history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import structlog

from bot.features.connect import texts
from bot.feishu.authorization import NotGranted
from bot.feishu.errors import FeishuFailure
from bot.outbox.delivery import Aside, Undeliverable
from bot.outbox.notices import say
from bot.people.personal_access import PersonalAccess
from bot.queue.inbox import QueueUnavailable
from bot.services import Services
from memory.identity import FeishuPerson
from memory.tables.user_tokens import AskPlace, DeviceCode

log = structlog.get_logger()

_MOST_WAITING = 5  # as `note_user_ask` keeps

# beside: the link stands where they asked; in_p2p: elsewhere. The others say why there is none.
Asked = Literal["beside", "in_p2p", "not-now", "app-may-not", "not-sent-privately"]


async def ask(
    services: Services,
    access: PersonalAccess,
    person: FeishuPerson,
    ask_id: str,
    place: AskPlace,
    scopes: tuple[str, ...],
) -> Asked:
    """Shows the link for `scopes` and queues the look at what comes of it. After a crash it is the
    same link. Raises `StoreError`."""
    try:
        device, life_s, interval_s = await _device(services, access, person, ask_id, place, scopes)
        minutes = max(life_s // 60, 1)
        delivery = await say(
            services,
            Aside(person.open_id, place.beside),
            texts.asked(scopes, device.link, minutes, place.language),
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


async def queue_step(services: Services, person: FeishuPerson, wait_s: float = 0.0) -> None:
    """What is next for them. Where the queue is away the maintenance does it within a minute."""
    if services.queue_connect is None:
        return
    try:
        await services.queue_connect(person, wait_s)
    except QueueUnavailable as exc:
        log.warning("connect.not_queued", error=str(exc))


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
