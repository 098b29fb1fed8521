"""Estimates an import of a chat's history and runs it, one page a job.

A job may be killed at any moment. It stores what it read and its position in one transaction, so a
repeated step finds it done or does it once. The estimate samples one page at each of ten dates and
keeps nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.features.history_import.reading import (
    PagePlace,
    PagesLeadNowhere,
    Source,
    author_ids,
    forward_ids,
    names_in,
    place_of,
    read_page,
)
from bot.features.history_import.reporting import (
    Refusal,
    import_refusal,
    is_hidden_thread,
    reason_against,
    remove_step,
    report_import,
    send_removal_receipt,
)
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Action, FeishuError, FeishuFailure, Unintelligible
from bot.feishu.models import HistoryPage, RawMessage, forward_text
from bot.hooks import FeatureJob
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.services import Services
from memory.tables.directory import ChatStore, PeopleStore
from memory.tables.imports import (
    PER_PAGE,
    Chat,
    HistoryImport,
    ImportStore,
    Page,
    Phase,
)

log = structlog.get_logger()
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 300.0
_MOST_UNINTELLIGIBLE = 3

DATES = 10


async def handle_import(services: Services, job: FeatureJob) -> None:
    """Does one job of an import and queues the next. Raises `StoreError` and, where a card could
    not be sent, `FeishuFailure`."""
    lease = job.lease
    import_id: int = lease.job.args["import_id"]
    structlog.contextvars.bind_contextvars(import_id=import_id)
    chat_import = await ImportStore(services.rpc).get(import_id)
    if chat_import is None:
        await send_removal_receipt(services, lease)
    elif chat_import.state == "removing":
        await remove_step(services, chat_import, lease)
    elif chat_import.state == "running":
        await _go_on(services, chat_import, lease)
    else:
        await report_import(services, chat_import, lease)


async def give_up_import(services: Services, lease: Lease) -> None:
    """A step failed for a reason that nobody foresaw: the import waits until it is resumed."""
    await ImportStore(services.rpc).fail(lease.job.args["import_id"], "defect")


async def _go_on(services: Services, chat_import: HistoryImport, lease: Lease) -> None:
    tries = int(lease.job.args.get("tries", 0))
    try:
        after = await _step(services, chat_import)
    except FeishuFailure as failure:
        refusal = _refusal(failure, tries)
        if refusal is None:
            await _pause(services, chat_import, failure, tries)
            return
        after = await _fail(services, chat_import, refusal, failure)
    except PagesLeadNowhere:
        after = await _fail(services, chat_import, "unintelligible", None)
    if after is None:
        return
    if after.state in ("running", "removing"):
        await queue_step(services, chat_import.id)
    elif after.state in ("done", "failed"):
        await report_import(services, after, lease)


async def queue_step(services: Services, import_id: int, **note: object) -> None:
    """Without a queue at hand the maintenance loop does it within a minute."""
    if services.queue_import:
        await services.queue_import(import_id, note)


def _refusal(failure: FeishuFailure, tries: int) -> Refusal | None:
    """Why the import cannot go on; None where trying again later may help."""
    if isinstance(failure, FeishuError):
        return import_refusal(failure)
    if isinstance(failure, Unintelligible) and tries + 1 >= _MOST_UNINTELLIGIBLE:
        return "unintelligible"
    return None


async def _pause(
    services: Services, chat_import: HistoryImport, failure: FeishuFailure, tries: int
) -> None:
    """The step is done again later, and the imports beside it meanwhile: a job that waits would
    hold them up."""
    asked_s = getattr(failure, "retry_after_s", None) or 0.0
    wait_s = max(asked_s, min(_SHORTEST_PAUSE_S * 2.0**tries, _LONGEST_PAUSE_S))
    log.warning(
        "import.waits",
        error=type(failure).__name__,
        code=getattr(failure, "code", None),
        phase=chat_import.phase,
        wait_s=wait_s,
    )
    await queue_step(services, chat_import.id, tries=min(tries + 1, 10), wait_s=wait_s)


async def _fail(
    services: Services, chat_import: HistoryImport, refusal: Refusal, failure: FeishuFailure | None
) -> HistoryImport | None:
    code, log_id = getattr(failure, "code", None), getattr(failure, "log_id", "")
    log.error("import.failed", refusal=refusal, phase=chat_import.phase, code=code, log_id=log_id)
    return await ImportStore(services.rpc).fail(chat_import.id, refusal)


async def _step(services: Services, chat_import: HistoryImport) -> HistoryImport | None:
    """The import after the step; None: it is gone. Raises `FeishuFailure` and `Astray`."""
    if reason := reason_against(services.settings):
        return await ImportStore(services.rpc).fail(chat_import.id, reason)
    if chat_import.phase == "chat":
        return await _read_chat(services, chat_import)
    if chat_import.phase == "threads":
        return await _read_thread(services, chat_import)
    return await _finish(services, chat_import)


async def _read_chat(services: Services, chat_import: HistoryImport) -> HistoryImport | None:
    place = place_of(
        chat_import.position, chat_import.since_ms // 1000 if chat_import.since_ms else None
    )
    source = await _source(services, chat_import)
    place, page = await _page(services, chat_import, source, place, chat_import.chat_id)
    kept_page = await _page_to_store(services, chat_import, source, place, page)
    return await _store(services, chat_import, "chat", chat_import.position, kept_page)


async def _read_thread(services: Services, chat_import: HistoryImport) -> HistoryImport | None:
    store = ImportStore(services.rpc)
    thread = await store.next_thread(chat_import.id)
    if thread is None:
        return await store.get(chat_import.id)  # in its last phase, or paused
    thread_id, position = thread
    source = replace(await _source(services, chat_import), in_thread=True)
    try:
        place, page = await _page(
            services, chat_import, source, place_of(position, None), thread_id
        )
        kept_page = await _page_to_store(services, chat_import, source, place, page)
    except PagesLeadNowhere:
        kept_page = Page(counts={"broken_threads": 1})
    except FeishuError as error:
        if not is_hidden_thread(error):
            raise
        kept_page = Page(
            counts={"old_threads" if error.action is Action.WITHOUT_THREAD else "deleted": 1}
        )
    return await _store(services, chat_import, "threads", position, kept_page, thread_id)


async def _store(
    services: Services,
    chat_import: HistoryImport,
    phase: Phase,
    at: str,
    page: Page,
    thread_id: str = "",
) -> HistoryImport | None:
    after = await ImportStore(services.rpc).store_page(
        chat_import.id, phase=phase, at=at, page=page, thread_id=thread_id
    )
    metrics.IMPORTED_MESSAGES.inc(max(after.messages - chat_import.messages, 0) if after else 0)
    log.info("import.page", phase=phase, kept=len(page.messages), left_out=dict(page.counts))
    return after


async def _page(
    services: Services, chat_import: HistoryImport, source: Source, place: PagePlace, container: str
) -> tuple[PagePlace, HistoryPage]:
    """The page, and the place where it was found: one whose token Feishu does not know any more is
    looked for anew. Raises `FeishuFailure` and `Astray`."""
    try:
        return place, await _requested_page(services, chat_import, source, place, container)
    except FeishuError as error:
        if not place.token or error.action is not Action.REJECTED:
            raise
        log.info("import.token_expired", code=error.code)
        restart = place.again(by_time=not source.in_thread)
        return restart, await _requested_page(services, chat_import, source, restart, container)


async def _requested_page(
    services: Services, chat_import: HistoryImport, source: Source, place: PagePlace, container: str
) -> HistoryPage:
    return await services.feishu.history_page(
        "thread" if source.in_thread else "chat",
        container,
        page_token=place.token,
        start_s=place.start_s,
        end_s=None if source.in_thread else math.ceil(chat_import.until_ms / 1000),
    )


async def _page_to_store(
    services: Services,
    chat_import: HistoryImport,
    source: Source,
    place: PagePlace,
    page: HistoryPage,
) -> Page:
    following = place.after(page, by_time=not source.in_thread)
    if source.in_thread and _is_past(page.messages, chat_import.until_ms):
        following = None
    forwarded_messages = await _forwarded_messages(services, forward_ids(page.messages, source))
    inner = [one for messages in forwarded_messages.values() for one in messages]
    names = await _names(services, chat_import, [*page.messages, *inner])
    texts = {key: forward_text(messages, names) for key, messages in forwarded_messages.items()}
    position = following.text if following else ""
    return read_page(page.messages, source, names, texts, position)


def _is_past(messages: Sequence[RawMessage], until_ms: int) -> bool:
    """Whether a thread, which is listed without an end, has got beyond it."""
    return any(one.create_time_ms >= until_ms for one in messages)


async def _source(services: Services, chat_import: HistoryImport) -> Source:
    topics = await ChatStore(services.rpc).is_topic_group(chat_import.chat_id)
    return Source(chat_import.chat_id, services.settings.feishu_app_id, topics)


async def _forwarded_messages(
    services: Services, message_ids: Sequence[str]
) -> Mapping[str, Sequence[RawMessage]]:
    """The messages of merged forwards, each list led by the forward. What Feishu does not show is
    left out."""
    messages_by_id = {}
    for message_id in message_ids:
        try:
            messages_by_id[message_id] = await services.feishu.get_message(
                message_id, user_card_content=True, of_history=True
            )
        except FeishuError as error:
            if error.action.may_pass:
                raise
    return messages_by_id


async def _names(
    services: Services, chat_import: HistoryImport, messages: Sequence[RawMessage]
) -> dict[str, str]:
    """Of those who wrote the messages and of those whom they mention. Asked for are those alone
    that are not told with the messages and that nobody here knows."""
    told_names, wanted_ids = names_in(messages), author_ids(messages)
    known_names = services.people.of(chat_import.tenant_key).known
    here = {one: known_names[one] for one in wanted_ids if one in known_names}
    missing = [one for one in wanted_ids if one not in told_names and one not in here]
    table = PeopleStore(services.rpc)
    looked_up = await services.authors.find(chat_import.tenant_key, missing, services.feishu, table)
    return {**looked_up, **told_names, **here}


async def _finish(services: Services, chat_import: HistoryImport) -> HistoryImport | None:
    """Who may read it follows from who is in the chat now, and from all names known of them."""
    members = await _members(services, chat_import)
    if members:
        bot = await services.own_person.look_up()
        # The bot's own joining is told like anybody's, and is no unknown person's.
        members[bot.open_id] = [bot.name]
    return await ImportStore(services.rpc).finish(chat_import.id, members)


async def _members(services: Services, chat_import: HistoryImport) -> dict[str, list[str]]:
    """The names of each; nothing where Feishu does not tell who is in the group."""
    if chat_import.chat_type == "p2p":
        return {}
    try:
        member_names = await services.feishu.member_names(chat_import.chat_id)
    except FeishuError as error:
        if error.action is not Action.ALERT:
            raise
        log.warning("import.members_unknown", code=error.code, scopes=error.scopes)
        return {}
    ids = [person.open_id for person in member_names]
    rows = await PeopleStore(services.rpc).named(chat_import.tenant_key, ids)
    table, known_names = (
        {row.open_id: row.name for row in rows},
        services.people.of(chat_import.tenant_key).known,
    )
    members = {}
    for person, name in member_names.items():
        named_so = (name, table.get(person.open_id), known_names.get(person.open_id))
        members[person.open_id] = list(dict.fromkeys(filter(None, named_so)))
    return members


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many messages an import would read, in how many minutes and pages; `oldest_ms` is when
    the first was sent, ms since epoch, None where there is none."""

    messages: int
    minutes: int
    oldest_ms: int | None
    pages: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The page of one date: when its messages were sent, ms since epoch, oldest first; `at_ms` is
    the date; `is_last`: nothing was said after it; `threads`: how many messages begin one;
    `position`: the number of the first in the chat, 0 where Feishu does not tell it."""

    at_ms: int
    sent_ms: tuple[int, ...]
    is_last: bool
    threads: int = 0
    position: int = 0


async def estimate_import(
    services: Services, chat: Chat, since_ms: int | None, until_ms: int
) -> Estimate:
    """What an import of `chat` would bring. Raises `FeishuFailure`; see `refusals`."""
    samples = await look_at_dates(services.feishu, chat[1], since_ms, until_ms)
    return extrapolate(samples, until_ms, services.settings.import_page_s)


async def look_at_dates(
    feishu: FeishuClient, chat_id: str, since_ms: int | None, until_ms: int
) -> list[Sample]:
    """A page at each date that has to be looked at. Raises `FeishuFailure`."""
    at_ms, samples = since_ms or 0, list[Sample]()
    for number in range(DATES):
        page = await feishu.history_page(
            "chat",
            chat_id,
            start_s=at_ms // 1000 if at_ms else None,
            end_s=math.ceil(until_ms / 1000),
        )
        sample = _sample(page, at_ms, until_ms)
        if number == 0 and sample.sent_ms:
            at_ms = sample.sent_ms[0]
            sample = _sample(page, at_ms, until_ms)
        samples.append(sample)
        following = next_date(samples, until_ms)
        if following is None:
            break
        at_ms = following
    return samples


def next_date(samples: Sequence[Sample], until_ms: int) -> int | None:
    """The next date to look at, ms since epoch; None: all is known, or enough. Dates that a page
    reaches beyond need not be looked at."""
    first, last = samples[0], samples[-1]
    if last.is_last or not last.sent_ms:
        return None
    step = max((until_ms - first.at_ms) / DATES, 1)
    number = math.floor((max(last.sent_ms[-1], last.at_ms) - first.at_ms) / step) + 1
    return first.at_ms + math.ceil(number * step) if number < DATES else None


def extrapolate(samples: Sequence[Sample], until_ms: int, page_s: float) -> Estimate:
    """What the pages say of all. The numbers of two messages tell how many lie between them.
    Without them a page is exact as far as it reaches, and goes on so until the next date.
    `page_s`: how long a page takes, in seconds."""
    messages = threads = 0.0
    for sample, following in zip(samples, [*samples[1:], None], strict=True):
        message_count = _until(sample, following.at_ms if following else until_ms)
        if following and 0 < sample.position <= following.position:
            message_count = following.position - sample.position
        messages += message_count
        threads += message_count * sample.threads / max(len(sample.sent_ms), 1)
    pages = math.ceil(messages / PER_PAGE) + round(threads)
    oldest = samples[0].sent_ms[0] if samples and samples[0].sent_ms else None
    return Estimate(round(messages), math.ceil(pages * page_s / 60), oldest, pages)


def _until(sample: Sample, end_ms: int) -> float:
    if sample.is_last or not sample.sent_ms or sample.sent_ms[-1] >= end_ms:
        return sum(at_ms < end_ms for at_ms in sample.sent_ms)
    covered_ms = max(sample.sent_ms[-1] - sample.at_ms, 1)
    return len(sample.sent_ms) * max((end_ms - sample.at_ms) / covered_ms, 1)


def _sample(page: HistoryPage, at_ms: int, until_ms: int) -> Sample:
    inside = [one for one in page.messages if at_ms <= one.create_time_ms < until_ms]
    sent_times = tuple(sorted(one.create_time_ms for one in inside))
    threads = sum(bool(one.thread_id) for one in inside)
    position = inside[0].position if inside else 0
    return Sample(at_ms, sent_times, not page.next_token, threads, position)
