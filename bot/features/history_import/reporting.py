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


async def report(services: Services, chat_import: HistoryImport, lease: Lease) -> None:
    """The card of an import that is done or has failed, once. Of one that ended long ago nothing
    is told any more: Feishu would not know that it was."""
    if chat_import.state not in ("done", "failed") or chat_import.error == "not_in_chat":
        return
    age_s = services.clock() - chat_import.updated_ms / 1000
    if age_s > UUID_HOLDS_S:
        log.info("import.not_told", state=chat_import.state, age_s=round(age_s))
        return
    await tell(
        services,
        chat_import.chat,
        await text_of(services, chat_import),
        key=f"import:{chat_import.id}:{chat_import.state}:{chat_import.updated_ms}",
        lease=lease,
    )


async def text_of(services: Services, chat_import: HistoryImport) -> Callable[[Language], str]:
    """What is told of an import that is done or has failed, by language; safe for a card. Raises
    `StoreError`."""
    who = await who_asked(services, chat_import)
    is_shown = await _is_shown(services, chat_import)

    def written(language: Language) -> str:
        if chat_import.state == "failed":
            return report_texts.failed(chat_import, language)
        zone, now = services.settings.zone, services.now()
        since = chat_import.since_ms
        began = datetime.fromtimestamp(since / 1000, zone) if since is not None else None
        return report_texts.finished(
            chat_import, language, who=who, since=began, now=now, shown=is_shown
        )

    return written


async def who_asked(services: Services, chat_import: HistoryImport) -> str:
    """The name of who asked for it, "" for an operator or somebody whose name nobody knows."""
    if not chat_import.started_by:
        return ""
    known_names = services.people.of(chat_import.tenant_key).known
    looked_up = await services.authors.find(
        chat_import.tenant_key, [chat_import.started_by], services.feishu, PeopleStore(services.rpc)
    )
    return known_names.get(chat_import.started_by) or looked_up.get(chat_import.started_by, "")


async def _is_shown(services: Services, chat_import: HistoryImport) -> bool:
    """Whether the owner has stated that all members read what was said before they joined."""
    params = {"p_chat_id": chat_import.chat_id, "p_tenant_key": chat_import.tenant_key}
    rules = await services.rpc.call("get_chat_rules", params, None)
    return bool(rules) and rules.get("history") == "shown"
