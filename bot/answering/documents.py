"""The documents of one turn: of the person who asks, told to whoever reads the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from bot.agents.prompts.drawn_on import note_sources
from bot.answering.question import Turn
from bot.documents.group_audience import AskedGroup, GroupAudience
from bot.documents.links import DocumentLink
from bot.documents.person_documents import PersonDocuments
from bot.documents.reading import DocumentReader
from bot.documents.turn_documents import TurnDocuments
from bot.people.personal_access import NotConnected, UserToken
from bot.services import Services
from memory.identity import FeishuPerson
from memory.scope import AgentMemoryContext
from memory.tables.told_documents import ToldDocumentStore


def documents_of(services: Services, turn: Turn) -> TurnDocuments | None:
    """None: nobody asked, or nothing is read as people here."""
    if services.access is None or turn.unasked or turn.request.sender_type != "user":
        return None
    reader = DocumentReader(services.feishu.documents, zone=services.settings.zone)
    who = asker(turn.context)
    renewed_token = token_of(services, who, is_retry=True)
    own = PersonDocuments(reader, token_of(services, who), renewed_token)
    note = partial(note_document, services, turn.context, turn.id)
    audience = audience_of(services, turn.context) if turn.in_group else None
    return TurnDocuments(own, note, audience)


def audience_of(services: Services, context: AgentMemoryContext) -> GroupAudience:
    """That of the group of `context`, asked as its actor."""
    who = asker(context)
    members_of = services.feishu.chat_members
    members = partial(members_of, context.chat_id)
    group = AskedGroup(context.chat_id, context.tenant_key, who, members, members_of)
    return GroupAudience(group, services.feishu.documents, token_of(services, who))


async def note_document(
    services: Services,
    context: AgentMemoryContext,
    turn_id: str,
    link: DocumentLink,
    text: str,
    open_ago_s: float | None = None,
) -> bool:
    """The turn, not answered yet, is given a text of the document, and goes with it. `open_ago_s`:
    how long ago everybody there could open it, so that what follows need not ask again for a
    minute. False: the turn is over. Raises `StoreError`."""
    store = ToldDocumentStore(services.rpc)
    source = await store.note(context, turn_id, str(link.kind), link.token, text)
    note_sources([source])
    if source is not None and open_ago_s is not None:
        await store.found_open(source, open_ago_s)
    return source is not None


def asker(context: AgentMemoryContext) -> FeishuPerson:
    """Who asks."""
    return FeishuPerson(context.actor_tenant or context.tenant_key, context.actor_id)


def token_of(
    services: Services, person: FeishuPerson, *, is_retry: bool = False
) -> Callable[[], Awaitable[str | None]]:
    """What gives their access token, None where they are not connected. `is_retry`: Feishu is asked
    whether it takes it; one that it does not is replaced. Raises FeishuFailure and `StoreError`."""

    async def access_token() -> str | None:
        access = services.access
        if access is None:
            return None

        async def accepted(token: UserToken) -> str:
            await access.authorization.who(token.access_token)
            return token.access_token

        try:
            return await access.call(person, accepted if is_retry else _taken)
        except NotConnected:
            return None

    return access_token


async def _taken(token: UserToken) -> str:
    return token.access_token
