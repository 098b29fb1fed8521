"""The calendar and tasks of one turn: of the person who asks, told to whoever reads the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import chain

import structlog

from bot.agenda.plans import Colleague
from bot.agenda.refusals import AgendaRefused
from bot.agenda.turn_agenda import AsAsker, TurnAgenda
from bot.answering.question import Turn
from bot.feishu.errors import FeishuFailure
from bot.feishu.user_scopes import missing_scopes
from bot.people.personal_access import NotConnected, UserToken
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.scope import AgentMemoryContext, FeishuPerson

log = structlog.get_logger()

_MOST_GROUPS = 10


def agenda_of(services: Services, turn: Turn) -> TurnAgenda | None:
    """None: nobody asked, or nothing is done as people here. An answer that may be shared in a
    group is one that a group reads."""
    if turn.unasked or turn.request.sender_type != "user":
        return None
    is_alone = not turn.in_group and not turn.private
    return agenda_for(services, turn.context, is_alone=is_alone)


def agenda_for(
    services: Services, context: AgentMemoryContext, *, is_alone: bool
) -> TurnAgenda | None:
    """That of the actor of `context`, whose home is the bot's tenant; None where nothing is done as
    people."""
    if services.access is None or context.actor_tenant not in ("", context.tenant_key):
        return None
    asker = FeishuPerson(context.tenant_key, context.actor_id)

    async def members() -> Sequence[Colleague]:
        if context.chat_type == "p2p":
            member_names = await _met_in_groups(services, context)
        else:
            member_names = await services.feishu.member_names(context.chat_id)
        home = asker.tenant_key
        return [
            Colleague(p.open_id, name, p.tenant_key != home) for p, name in member_names.items()
        ]

    return TurnAgenda(
        services.feishu.calendars,
        _as_person(services, asker),
        asker.open_id,
        is_alone=is_alone,
        in_group=context.chat_type != "p2p",
        usual=services.settings.zone,
        now=services.now,
        members=members,
    )


async def _met_in_groups(
    services: Services, context: AgentMemoryContext
) -> dict[FeishuPerson, str]:
    """The members of the groups that both the asker and the bot are in: people name them in a p2p
    chat, too. A group whose members Feishu does not list is left out."""
    try:
        groups = await services.store.shared_groups(context, most=_MOST_GROUPS)
    except StoreError as exc:
        log.warning("agenda.groups_unknown", error=type(exc).__name__)
        return {}

    async def members(group: str) -> dict[FeishuPerson, str]:
        try:
            return await services.feishu.member_names(group)
        except FeishuFailure as failure:
            log.info("agenda.members_unknown", error=type(failure).__name__)
            return {}

    lists = await asyncio.gather(*map(members, groups))
    return dict(chain.from_iterable(one.items() for one in lists))


def _as_person(services: Services, asker: FeishuPerson) -> AsAsker:
    async def as_asker(
        purposes: Collection[str], make: Callable[[str], Awaitable[object]]
    ) -> object:
        async def made(token: UserToken) -> object:
            if missing := missing_scopes(purposes, token.scopes):
                raise AgendaRefused("not_approved", scopes=missing)
            return await make(token.access_token)

        if services.access is None:
            raise AgendaRefused("unavailable")
        try:
            return await services.access.call(asker, made)
        except NotConnected:
            raise AgendaRefused("not_connected", scopes=missing_scopes(purposes, ())) from None
        except StoreUnavailable as exc:
            log.warning("agenda.memory_away", error=type(exc).__name__)
            raise AgendaRefused("unavailable") from exc

    return as_asker
