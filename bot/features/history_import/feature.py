"""Answers `/import` and its buttons for those who manage the chat: explains, previews, starts,
pauses, resumes and removes an import.

Every button begins a turn of the person who presses it. What it does can be done twice."""

from __future__ import annotations

import asyncio

import structlog

from bot.features.commands import learn_managers
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.help import hears_all
from bot.features.history_import import cards, reporting
from bot.features.history_import.cards import TOOLS
from bot.features.history_import.importing import (
    estimate_import,
    give_up_import,
    handle_import,
    queue_step,
)
from bot.features.history_import.reporting import (
    import_refusal,
    reason_against,
    report_text,
    starter_name,
)
from bot.features.private_answers.feature import tell_asker_text
from bot.feishu import markup
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.hooks import FeatureTurn, PressTurn
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import Reply, chosen_values
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import IMPORT_TASK
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import AccessDenied, StoreError, StoreUnavailable
from memory.tables.imports import Chat, HistoryImport, ImportStore

log = structlog.get_logger()
_TEND_EVERY_S = 60.0
_AFTER_ANSWER_S = 1.0  # a short import would be reported above the card that says it begins


async def answer_import_command(services: Services, here: CommandTurn) -> Reply:
    """Raises `StoreUnavailable`."""
    if refusal := await _refusal(services, here):
        return await tell_asker_text(services, here, refusal)
    return await _import_reply(services, here)


async def press_import(services: Services, here: PressTurn) -> Reply:
    """What a button of such a card does, if who pressed manages the chat. Raises
    `StoreUnavailable`."""
    if refusal := await _refusal(services, here):
        return Reply(refusal)
    try:
        return await _press_import(services, here)
    except AccessDenied:  # no longer
        return Reply(cards.say("refused", here.language))


async def _press_import(services: Services, here: PressTurn) -> Reply:
    store, chat = ImportStore(services.rpc), _chat(here)
    match here.press.payload["tool"]:
        case cards.PREVIEW:
            return await _preview_reply(services, here)
        case cards.START:
            return await _start_import(services, here)
        case cards.MORE:
            return await _offer_spans(services, here, await store.of_chat(chat, here.context))
        case cards.ASK_REMOVAL:
            return await _asked_to_remove(services, here)
        case cards.PAUSE:
            await store.pause(chat, here.context)
        case cards.RESUME:
            await _queue(services, await store.resume(chat, here.context))
        case cards.REMOVE:
            await _queue(services, await store.remove(chat, here.context))
        case _:
            pass  # it is shown as it is now
    return await _import_reply(services, here)


async def _import_reply(services: Services, here: FeatureTurn) -> Reply:
    """The import as it is, or what an import is."""
    chat_import = await ImportStore(services.rpc).of_chat(_chat(here), here.context)
    if chat_import is None:
        return await _offer_spans(services, here, None)
    now = services.now()
    if chat_import.state in ("done", "failed"):
        # it is safe for a card already, and would be made so twice
        text = markup.unescape((await report_text(services, chat_import))(here.language))
    else:
        text = cards.progress_text(
            chat_import,
            here.language,
            who=await starter_name(services, chat_import),
            now=now,
            page_s=services.settings.import_page_s,
        )
    return Reply(text, cards.buttons_of_import(here, chat_import, _asked_ms(services, here)))


async def _offer_spans(
    services: Services, here: FeatureTurn, chat_import: HistoryImport | None
) -> Reply:
    """What an import is, with the choice of how far back it is to go."""
    if reason := await _reason_against(services, here):
        return Reply(reason)
    spans_offered = cards.span_choices(chat_import, _asked_ms(services, here))
    if not spans_offered:
        return await _import_reply(services, here)
    rule = await _history_rule(services, here)
    text = cards.intro_text(here.language, in_group=_in_group(here), rule=rule)
    return Reply(text, (cards.preview_form(here, spans_offered),))


async def _preview_reply(services: Services, here: PressTurn) -> Reply:
    """What an import would bring; nothing is kept."""
    if reason := await _reason_against(services, here):
        return Reply(reason)
    form = here.press.payload["form"]
    span = chosen_values(form, here.values).get(cards.SPAN, form[0]["initial"])
    until_ms = _asked_ms(services, here)
    since_ms = cards.span_start_ms(span, until_ms)
    try:
        import_estimate = await estimate_import(services, _chat(here), since_ms, until_ms)
    except FeishuFailure as exc:
        return Reply(_not_read(exc, here))
    rule = await _history_rule(services, here)
    text = cards.preview_text(
        import_estimate, here.language, now=services.now(), in_group=_in_group(here), rule=rule
    )
    if not import_estimate.messages:
        return Reply(text)
    arguments = {"since_ms": since_ms, "until_ms": until_ms, "estimated": import_estimate.messages}
    return Reply(text, cards.start_or_not(here, arguments))


async def _start_import(services: Services, here: PressTurn) -> Reply:
    """As it was previewed. Beginning again after a crash reads it again, which changes nothing."""
    if reason := await _reason_against(services, here):
        return Reply(reason)
    arguments = here.press.payload["arguments"]
    chat_import = await ImportStore(services.rpc).start(
        _chat(here),
        here.chat_type,
        context=here.context,
        since_ms=arguments["since_ms"],
        until_ms=arguments["until_ms"],
        estimate=arguments["estimated"],
    )
    await _queue(services, chat_import, wait_s=_AFTER_ANSWER_S)
    return await _import_reply(services, here)


async def _asked_to_remove(services: Services, here: FeatureTurn) -> Reply:
    chat_import = await ImportStore(services.rpc).of_chat(_chat(here), here.context)
    if chat_import is None or chat_import.state == "removing":
        return await _import_reply(services, here)
    count = f"{chat_import.messages:,}"
    question = cards.say("ask-removal", here.language, n=chat_import.messages, count=count)
    return Reply(question, cards.remove_or_not(here))


async def _queue(
    services: Services, chat_import: HistoryImport | None, wait_s: float = 0.0
) -> None:
    """Its next step. Where the queue is away the maintenance does it within a minute."""
    if chat_import is None or chat_import.state not in ("running", "removing"):
        return
    try:
        await queue_step(services, chat_import.id, wait_s=wait_s)
    except QueueUnavailable as exc:
        log.warning("import.not_queued", import_id=chat_import.id, error=str(exc))


async def _refusal(services: Services, here: FeatureTurn) -> str:
    """Why whoever asks may not import here; "" if they may."""
    if not here.context.speaks_for_self:
        return cards.say("refused", here.language)
    readable = await learn_managers(services, here.context, here.chat_type)
    if await ChatConversations(services.rpc, here.context).is_managed():
        return ""
    return cards.say("refused" if readable else "managers-unreadable", here.language)


async def _reason_against(services: Services, here: FeatureTurn) -> str:
    """Why nothing can be imported here, whoever asks; "" if it can."""
    settings, language = services.settings, here.language
    if reason_against(settings):
        off = settings.group_transcript == "off"
        return cards.say("no-memory-of-groups" if off else "memory-apart", language)
    if not await hears_all(services, here.chat_type):
        return reporting.say("failed-no_scope", language)
    return ""


def _not_read(failure: FeishuFailure, here: FeatureTurn) -> str:
    reason = import_refusal(failure) if isinstance(failure, FeishuError) else None
    log.info("import.no_preview", error=type(failure).__name__, reason=reason)
    if reason is None:
        return cards.say("not-now", here.language)
    return reporting.say(f"failed-{reason}", here.language)


async def _history_rule(services: Services, here: FeatureTurn) -> str:
    rules = await ChatConversations(services.rpc, here.context).rules(services.settings)
    return rules.choice("history")


def _chat(here: FeatureTurn) -> Chat:
    return here.context.tenant_key, here.context.chat_id


def _in_group(here: FeatureTurn) -> bool:
    return here.chat_type != "p2p"


def _asked_ms(services: Services, here: FeatureTurn) -> int:
    return int(services.asked_at(here.asked_ms).timestamp() * 1000)


async def tend_imports(services: Services, table: JobTable) -> None:
    """Once a minute, queues the steps that a worker which died left unqueued."""
    while True:
        await queue_idle_imports(services, table)
        await asyncio.sleep(_TEND_EVERY_S)


async def queue_idle_imports(services: Services, table: JobTable) -> int:
    """Queues a step of each import that has none. Returns how many. Never raises."""
    queue_count = 0
    try:
        for one in await ImportStore(services.rpc).at_work():
            queue_count += await table.queue_idle_import(one.id)
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("imports.away", error=type(exc).__name__)
    except StoreError as exc:
        log.error("imports.refused", error=type(exc).__name__, code=exc.code)
    return queue_count


HISTORY_IMPORT = Feature(
    name="history_import",
    commands=(
        CommandSpec(
            words=("import", "导入"),
            run=answer_import_command,
            help=(
                HelpLine(
                    "`/import`: read what was said here before I joined (you see a preview "
                    "first); for the group owner, admins and whoever added me",
                    "`/导入`：先预览，再读取我入群之前的消息；"
                    "仅群主、群管理员和把我加进群的人可以使用",
                    lambda here: here.in_group and here.imports,
                ),
                HelpLine(
                    "`/import`: read our earlier private messages, after showing you a preview",
                    "`/导入`：先预览，再读取我们单聊里以前的消息",
                    lambda here: not here.in_group and here.imports,
                ),
            ),
        ),
    ),
    presses=dict.fromkeys(TOOLS, press_import),
    jobs={IMPORT_TASK: handle_import},
    give_ups={IMPORT_TASK: give_up_import},
    tending=(tend_imports,),
)
