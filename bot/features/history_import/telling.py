"""A card that tells a chat what became of its import: sent once, whatever happens to the job."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bot.feishu.errors import FeishuError
from bot.listening.chat_rules import languages_of, rules_of
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.finding import doubt_of
from bot.outbox.notices import say
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.languages import Language
from memory.tables.imports import Chat

log = structlog.get_logger()


async def tell(
    services: Services,
    chat: Chat,
    text_in: Callable[[Language], str],
    *,
    key: str,
    lease: Lease,
) -> None:
    """Shows what `text_in` gives, in the chat's language, or in both where nothing tells which.

    Nothing is sent when an earlier attempt may have sent it and Feishu may have forgotten that.
    Raises `FeishuFailure` where another attempt helps.
    """
    tenant_key, chat_id = chat
    outcome = "sent"
    if doubt_of(services, lease.job.maybe_sent_ms).is_old:
        outcome = "unknown"
    else:
        text = "\n\n---\n\n".join(text_in(one) for one in await _languages(services, chat))
        try:
            await say(services, Target("", chat_id, in_thread=False), text, key=key, lease=lease)
        except Undeliverable as exc:
            outcome = f"refused: {exc.reason}"
        except FeishuError as exc:
            if exc.action.may_pass:
                raise
            outcome = f"refused: feishu {exc.code}"
    lease.unsure = False
    log.info("import.told", chat_id=chat_id, tenant_key=tenant_key, outcome=outcome)


async def _languages(services: Services, chat: Chat) -> tuple[Language, ...]:
    params = {"p_chat_id": chat[1], "p_tenant_key": chat[0]}
    rules = await services.rpc.call("get_chat_rules", params, None)
    lark = "larksuite" in services.settings.domain
    return languages_of(rules_of(rules, services.settings).language, "", lark=lark)
