"""Tells a chat what was imported, or why it could not be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from bot.features.history_import import report_texts
from bot.features.history_import.telling import tell
from bot.outbox.finding import UUID_HOLDS_S
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.languages import Language
from memory.tables.imports import HistoryImport
from memory.tables.people import PeopleStore

log = structlog.get_logger()


async def report(services: Services, found: HistoryImport, lease: Lease) -> None:
    """The card of an import that is done or has failed, once. Of one that ended long ago nothing
    is told any more: Feishu would not know that it was."""
    if found.state not in ("done", "failed") or found.error == "not_in_chat":
        return
    age_s = services.clock() - found.updated_ms / 1000
    if age_s > UUID_HOLDS_S:
        log.info("import.not_told", state=found.state, age_s=round(age_s))
        return
    await tell(
        services,
        found.chat,
        await text_of(services, found),
        key=f"import:{found.id}:{found.state}:{found.updated_ms}",
        lease=lease,
    )


async def text_of(services: Services, found: HistoryImport) -> Callable[[Language], str]:
    """What is told of an import that is done or has failed, by language; safe for a card. Raises
    `StoreError`."""
    who = await who_asked(services, found)
    shown = await _is_shown(services, found)

    def written(language: Language) -> str:
        if found.state == "failed":
            return report_texts.failed(found, language)
        zone, now = services.settings.zone, services.now()
        since = found.since_ms
        began = datetime.fromtimestamp(since / 1000, zone) if since is not None else None
        return report_texts.finished(found, language, who=who, since=began, now=now, shown=shown)

    return written


async def who_asked(services: Services, found: HistoryImport) -> str:
    """The name of who asked for it, "" for an operator or somebody whose name nobody knows."""
    if not found.started_by:
        return ""
    known = services.people.of(found.tenant_key).known
    asked = await services.authors.find(
        found.tenant_key, [found.started_by], services.feishu, PeopleStore(services.rpc)
    )
    return known.get(found.started_by) or asked.get(found.started_by, "")


async def _is_shown(services: Services, found: HistoryImport) -> bool:
    """Whether the owner has stated that all members read what was said before they joined."""
    params = {"p_chat_id": found.chat_id, "p_tenant_key": found.tenant_key}
    rules = await services.rpc.call("get_chat_rules", params, None)
    return bool(rules) and rules.get("history") == "shown"
