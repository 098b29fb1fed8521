"""Every adapter of a worker, put together once and closed at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bot.agents.configured_models import Meter, Models
from bot.agents.embeddings import build_embedder
from bot.agents.manager import Manager, Stores
from bot.agents.mcp.config import McpServer
from bot.agents.mcp.servers import McpServers
from bot.agents.specialists import load_own_servers, load_own_specialists
from bot.agents.summaries import build_summariser
from bot.answering.recall import NamesIn, recall_tool
from bot.answering.request_rate import build_judge
from bot.features.registry import HOOKS, TOOLS
from bot.feishu.authorization import UserAuthorization
from bot.feishu.client import FeishuClient
from bot.feishu.transport import SharedPace
from bot.people.membership import Membership, NameKeeper
from bot.people.people_directory import BotIdentity, People
from bot.people.personal_access import PersonalAccess
from bot.process import metrics
from bot.process.concurrency import cancel_tasks
from bot.process.usage import MonthlyQuota, PersonRates, UsageCounter
from bot.queue.connections import open_rpc
from bot.queue.consumer import PerUserSemaphore
from bot.queue.operator_actions import QueueOperations
from bot.services import Services
from bot.settings import Settings
from memory.backends.pool import Pool
from memory.backends.postgres import PostgresRpc
from memory.fallback.breaker import BreakerState, BreakingRpc, CircuitBreaker, MemoryWatch
from memory.fallback.store import OutageStore
from memory.fallback.store_jobs import LateRpc, StoreJobs
from memory.recall.selection import SpeakerLabel
from memory.rpc import Rpc
from memory.sealing import Sealer
from memory.store import MemoryStore
from memory.tables.directory import ChatStore, PeopleStore
from memory.tables.notes import NoteStore
from memory.tables.timers import TimerStore
from memory.tables.user_tokens import UserTokenStore

if TYPE_CHECKING:
    from memory.accounts import AccountLinker


_OF_ONE_PERSON = 4  # a quarter of a worker's places
_LEAST_OF_ONE_PERSON = 8  # turns that wait for a slow model take no place from others
_BREAKER_NUMBERS = {"closed": 0, "half_open": 1, "open": 2}


def _turns_of_one_person(places: int) -> int:
    return max(_LEAST_OF_ONE_PERSON, places // _OF_ONE_PERSON)


@contextlib.asynccontextmanager
async def open_services(
    settings: Settings, url: str, pool: Pool, pace: SharedPace
) -> AsyncIterator[Services]:
    """The services of a worker over the queue's database `url`; they share `pool`.

    `pace` is what this worker shares of Feishu's limits with the others.
    """
    async with contextlib.AsyncExitStack() as stack:
        tally = UsageCounter()
        feishu = _feishu(stack, settings, pace, tally)
        rpc, store = await _memory(settings, url, pool)
        stack.push_async_callback(store.close)
        membership = Membership(feishu, ChatStore(rpc))
        stack.push_async_callback(membership.close)
        people = await _people(stack, settings, feishu, rpc, membership)
        servers = load_own_servers(settings)
        mcp = await _mcp(stack, servers)
        meter = Meter()
        models = Models(settings, meter, tally)
        stack.push_async_callback(models.close)
        embedder = build_embedder(settings, tally)
        if embedder:
            stack.push_async_callback(embedder.close)
        stores = Stores(
            store,
            NoteStore(rpc),
            recall_tool(store, embedder, settings.zone, _names_in(people)),
            TimerStore(rpc),
            embedder.likeness if embedder else None,
        )
        yield Services(
            settings=settings,
            store=store,
            feishu=feishu,
            own_person=BotIdentity(feishu),
            people=people,
            manager=_manager(settings, stores, servers, mcp, models),
            rpc=rpc,
            hooks=HOOKS,
            meter=meter,
            sight=models.sight(),
            judge=build_judge(models.judge()),
            summarise=build_summariser(settings, models),
            embedder=embedder,
            perform=mcp.run_pending if mcp else None,
            queue=QueueOperations(url),
            membership=membership,
            tally=tally,
            quota=MonthlyQuota(settings.feishu_calls_per_month),
            rates=PersonRates(settings.requests_per_minute),
            shares=PerUserSemaphore(_turns_of_one_person(settings.worker_concurrency)),
            access=_access(stack, settings, rpc),
        )


def _feishu(
    stack: contextlib.AsyncExitStack, settings: Settings, pace: SharedPace, tally: UsageCounter
) -> FeishuClient:
    feishu = FeishuClient(
        settings.domain,
        settings.feishu_app_id,
        settings.feishu_app_secret,
        pace=pace,
        calls_per_second=settings.feishu_calls_per_second,
        count=tally.count_call,
    )
    stack.push_async_callback(feishu.close)
    return feishu


def _access(
    stack: contextlib.AsyncExitStack, settings: Settings, rpc: Rpc
) -> PersonalAccess | None:
    if not settings.user_token_key:
        return None
    sealer = Sealer.of(settings.user_token_key, settings.user_token_key_before)
    authorization = UserAuthorization(
        settings.domain, settings.feishu_app_id, settings.feishu_app_secret
    )
    access = PersonalAccess(UserTokenStore(rpc, sealer), authorization)
    stack.push_async_callback(access.close)
    return access


async def _memory(settings: Settings, url: str, pool: Pool) -> tuple[Rpc, MemoryStore]:
    """The memory. In Supabase it can be away while the queue is there: then turns are queued."""
    if not settings.supabase_url:
        direct = PostgresRpc(pool, sharing=settings.sharing)
        return direct, MemoryStore(direct)
    rpc = await open_rpc(settings, url)
    watch, jobs = _MemoryMetrics(), StoreJobs(pool)
    guarded_rpc = BreakingRpc(rpc, CircuitBreaker(), watch=watch)
    return LateRpc(guarded_rpc, jobs), OutageStore(guarded_rpc, jobs, watch=watch)


class _MemoryMetrics(MemoryWatch):
    """Counts the outages of the memory."""

    def state(self, state: BreakerState) -> None:
        metrics.MEMORY_BREAKER.set(_BREAKER_NUMBERS[state])

    def count_failure(self, kind: str) -> None:
        metrics.MEMORY_FAILURES.labels(kind=kind).inc()

    def count_kept_turn(self) -> None:
        metrics.TURNS_UNSTORED.inc()

    def count_written_turn(self) -> None:
        metrics.TURNS_STORED_LATER.inc()

    def waiting(self, turns: int, oldest_s: float) -> None:
        metrics.UNSTORED.set(turns)
        metrics.UNSTORED_OLDEST_SECONDS.set(oldest_s)


async def _people(
    stack: contextlib.AsyncExitStack,
    settings: Settings,
    feishu: FeishuClient,
    rpc: Rpc,
    membership: Membership,
) -> People:
    """The names, kept in the table; with SUPABASE_AUTH_USERS new people get their Auth user."""
    table = PeopleStore(rpc)
    linker = _linker(stack, settings, table)
    keeper = NameKeeper(table, on_new=linker.wake) if linker else NameKeeper(table)
    stack.push_async_callback(keeper.close)
    return People(feishu, table=table, keeper=keeper, membership=membership)


def _linker(
    stack: contextlib.AsyncExitStack, settings: Settings, table: PeopleStore
) -> AccountLinker | None:
    if not settings.supabase_auth_users:
        return None
    from memory.accounts import AccountLinker, AuthUsers  # brings the client of Supabase Auth

    users = AuthUsers(settings.supabase_url, settings.supabase_secret_key)
    stack.push_async_callback(users.close)
    linker = AccountLinker(table, users)
    linking = asyncio.create_task(linker.run())
    stack.push_async_callback(cancel_tasks, [linking])
    return linker


async def _mcp(stack: contextlib.AsyncExitStack, servers: Sequence[McpServer]) -> McpServers | None:
    if not servers:
        return None
    mcp = McpServers(servers)
    await mcp.start()
    stack.push_async_callback(mcp.close)
    return mcp


def _manager(
    settings: Settings,
    stores: Stores,
    servers: Sequence[McpServer],
    mcp: McpServers | None,
    models: Models,
) -> Manager:
    return Manager(
        models.main(),
        model_name=settings.openai_model,
        stores=stores,
        tools=[one for one in TOOLS if one.is_stored or settings.user_token_key],
        specialists=load_own_specialists(settings, servers),
        mcp=mcp,
        model_named=models.model_of,
    )


def _names_in(people: People) -> NamesIn:
    def names_in(tenant_key: str) -> tuple[Mapping[str, str], SpeakerLabel]:
        names = people.of(tenant_key)
        return names.known, names.label

    return names_in
