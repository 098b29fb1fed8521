"""Takes an import out again, some thousand messages a job, and says in the chat how many went.

How many there were is noted with the jobs before the first goes: the import, which counts them, is
the last to go.
"""

from __future__ import annotations

import structlog

from bot.features.history_import import report_texts
from bot.features.history_import.telling import tell
from bot.queue.consumer import Lease
from bot.services import Services
from memory.tables.imports import HistoryImport, ImportStore

log = structlog.get_logger()

_KEPT = ("tenant_key", "chat_id", "total", "quiet")


async def remove_step(services: Services, chat_import: HistoryImport, lease: Lease) -> None:
    """Deletes some of it; with the last of it goes a receipt, unless the job is `quiet`."""
    note: dict[str, object] = {key: value for key, value in lease.job.args.items() if key in _KEPT}
    if "total" not in note and services.queue_import:
        chat = {"tenant_key": chat_import.tenant_key, "chat_id": chat_import.chat_id}
        await services.queue_import(chat_import.id, {**note, **chat, "total": chat_import.messages})
        return
    removed_count, left = await ImportStore(services.rpc).remove_some(chat_import.id)
    log.info("import.removed", messages=removed_count, left=left.messages if left else 0)
    if left is None:
        await say_receipt(services, lease)
    elif services.queue_import:
        await services.queue_import(chat_import.id, note)


async def say_receipt(services: Services, lease: Lease) -> None:
    """How many messages went, once; nothing where the job does not know."""
    args = lease.job.args
    if "total" not in args or args.get("quiet"):
        return
    await tell(
        services,
        (args["tenant_key"], args["chat_id"]),
        lambda language: report_texts.say("removed", language, n=int(args["total"])),
        key=f"import-removed:{args['import_id']}",
        lease=lease,
    )
