"""Feishu says that somebody's tokens are revoked: they are deleted here at once."""

from __future__ import annotations

import structlog

from bot.feishu.events import Envelope, MalformedEvent
from bot.feishu.fields import as_text
from bot.services import Services
from memory.identity import FeishuPerson

log = structlog.get_logger()


async def handle_revocation(services: Services, envelope: Envelope, received_ms: int) -> None:
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
