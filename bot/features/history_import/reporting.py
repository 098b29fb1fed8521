"""Tells a chat what became of its import and why there can be none, and removes an import in steps.

The number of messages is noted with the removing jobs before the first one is deleted, because the
import row, which counts them, goes last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import structlog

from bot.feishu import markup
from bot.feishu.errors import SCOPE_OF_CHAT, Action, FeishuError
from bot.listening.chat_rules import languages_of, rules_of
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.finding import UUID_HOLDS_S, doubt_of
from bot.outbox.sending import send_notice
from bot.queue.consumer import Lease
from bot.services import Services
from bot.settings import Settings
from bot.text import times
from bot.text.languages import Catalogue, Language
from memory.tables.directory import PeopleStore
from memory.tables.imports import Chat, HistoryImport, ImportStore

log = structlog.get_logger()

_RECEIPT_ARGS = ("tenant_key", "chat_id", "total", "quiet")

say = Catalogue(__file__).say
_MISSING = ("old_threads", "broken_threads", "deleted", "without_text", "unreadable")

# not_offered: this installation keeps no memory of groups. secret_mode: the group forbids copying.
# no_scope: the app lacks im:message.group_msg. not_in_chat: the bot is not there (any more).
# unintelligible: Feishu's pages lead nowhere. refused: another refusal. defect: an error of ours.
Refusal = Literal[
    "not_offered",
    "secret_mode",
    "no_scope",
    "not_in_chat",
    "unintelligible",
    "refused",
    "defect",
]
_SECRET_MODE, _SCOPE = 231203, 99991672
_OUT = frozenset({Action.TERMINAL_CHAT, Action.TERMINAL_USER})
_GONE_THREADS = frozenset({Action.WITHOUT_THREAD, Action.TERMINAL_MESSAGE})


async def report_import(services: Services, chat_import: HistoryImport, lease: Lease) -> None:
    """The card of an import that is done or has failed, once. Of one that ended long ago nothing
    is told any more: Feishu would not know that it was."""
    if chat_import.state not in ("done", "failed") or chat_import.error == "not_in_chat":
        return
    age_s = services.clock() - chat_import.updated_ms / 1000
    if age_s > UUID_HOLDS_S:
        log.info("import.not_told", state=chat_import.state, age_s=round(age_s))
        return
    await tell_chat(
        services,
        chat_import.chat,
        await report_text(services, chat_import),
        key=f"import:{chat_import.id}:{chat_import.state}:{chat_import.updated_ms}",
        lease=lease,
    )


async def report_text(services: Services, chat_import: HistoryImport) -> Callable[[Language], str]:
    """What is told of an import that is done or has failed, by language; safe for a card. Raises
    `StoreError`."""
    who = await starter_name(services, chat_import)
    is_shown = await _is_shown(services, chat_import)

    def text_in(language: Language) -> str:
        if chat_import.state == "failed":
            return failure_text(chat_import, language)
        zone, now = services.settings.zone, services.now()
        since_ms = chat_import.since_ms
        began = datetime.fromtimestamp(since_ms / 1000, zone) if since_ms is not None else None
        return finished_text(
            chat_import, language, who=who, oldest=began, now=now, is_shown=is_shown
        )

    return text_in


async def starter_name(services: Services, chat_import: HistoryImport) -> str:
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


async def remove_step(services: Services, chat_import: HistoryImport, lease: Lease) -> None:
    """Deletes some of it; with the last of it goes a receipt, unless the job is `quiet`."""
    note: dict[str, object] = {
        key: value for key, value in lease.job.args.items() if key in _RECEIPT_ARGS
    }
    if "total" not in note and services.queue_import:
        chat = {"tenant_key": chat_import.tenant_key, "chat_id": chat_import.chat_id}
        await services.queue_import(chat_import.id, {**note, **chat, "total": chat_import.messages})
        return
    removed_count, rest = await ImportStore(services.rpc).remove_some(chat_import.id)
    log.info(
        "import.removed",
        messages=removed_count,
        left=rest.messages if rest else 0,
    )
    if rest is None:
        await send_removal_receipt(services, lease)
    elif services.queue_import:
        await services.queue_import(chat_import.id, note)


async def send_removal_receipt(services: Services, lease: Lease) -> None:
    """How many messages went, once; nothing where the job does not know."""
    args = lease.job.args
    if "total" not in args or args.get("quiet"):
        return
    await tell_chat(
        services,
        (args["tenant_key"], args["chat_id"]),
        lambda language: say("removed", language, n=int(args["total"])),
        key=f"import-removed:{args['import_id']}",
        lease=lease,
    )


async def tell_chat(
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
            await send_notice(
                services, Target("", chat_id, in_thread=False), text, key=key, lease=lease
            )
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


def finished_text(
    chat_import: HistoryImport,
    language: Language,
    *,
    who: str,
    oldest: datetime | None,
    now: datetime,
    is_shown: bool,
) -> str:
    """Who imported what, since when, who reads it, what is missing, and how to remove it. `who` is
    a name, "" for an operator; `oldest` None: from the beginning."""
    asked_by = markup.card_markdown(who) if who else say("operator", language)
    began = times.day_text(oldest, language, now=now) if oldest else ""
    span = say("since", language, day=began) if oldest else say("from-the-beginning", language)
    own = chat_import.chat_type == "p2p"
    lines = [
        say(
            "own" if own else "finished", language, n=chat_import.messages, who=asked_by, span=span
        ),
        say("own-use" if own else "use", language),
        "" if own else say(_readers(chat_import, is_shown=is_shown), language),
        _missing(chat_import, language),
        say("remove", language),
    ]
    return "\n\n".join(filter(None, lines))


def _readers(chat_import: HistoryImport, *, is_shown: bool) -> str:
    if is_shown:
        return "read-by-all"
    return "read-by-nobody" if chat_import.report.get("members_unknown") else "read-since-joining"


def failure_text(chat_import: HistoryImport, language: Language) -> str:
    """Why the history could not be read (on)."""
    key = f"failed-{chat_import.error}"
    reason = say(key if Catalogue(__file__).has(key) else "failed-refused", language)
    kept_line = say("kept-so-far", language, n=chat_import.messages) if chat_import.messages else ""
    return "\n\n".join(filter(None, [reason, kept_line]))


def _missing(chat_import: HistoryImport, language: Language) -> str:
    """What was there and is not kept, by kind."""
    counts = [(kind, chat_import.report.get(kind, 0)) for kind in _MISSING]
    kinds = [say(f"missing-{kind}", language, n=count) for kind, count in counts if count]
    return say("missing", language, kinds=say("comma", language).join(kinds)) if kinds else ""


def reason_against(settings: Settings) -> Refusal | None:
    """Why there is no import here at all; None where there is."""
    return None if settings.sharing == "chat" else "not_offered"


def import_refusal(error: FeishuError) -> Refusal | None:
    """What Feishu's error means for an import; None where trying again later may help."""
    if error.code == _SECRET_MODE:
        return "secret_mode"
    if error.code in (SCOPE_OF_CHAT, _SCOPE):
        return "no_scope"
    if error.action in _OUT:
        return "not_in_chat"
    return None if error.action.may_pass else "refused"


def is_hidden_thread(error: FeishuError) -> bool:
    """Whether it says only that one thread is not shown to the bot, or is no more."""
    return error.action in _GONE_THREADS
