"""What a worker works with, put together once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.agents.configured_models import Meter
from bot.agents.embeddings import Embedder
from bot.agents.llm.model_traits import VisionProbe
from bot.agents.manager import Manager
from bot.agents.mcp.servers import ActionResult
from bot.agents.prompts.prompt import PendingAction
from bot.agents.running_turns import Stops
from bot.agents.summaries import Summarise, extractive_summary
from bot.conversation import Judge
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Denials
from bot.files.reading import FileReader
from bot.hooks import Hooks
from bot.listening.transcript import HeldTranscripts
from bot.people.membership import Membership
from bot.people.people_directory import AuthorNames, BotIdentity, People
from bot.people.personal_access import PersonalAccess
from bot.process.usage import (
    DailyTokenLimit,
    MonthlyQuota,
    PendingTurnRecords,
    PersonRates,
    UsageCounter,
)
from bot.queue.consumer import PerUserSemaphore
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from memory.rpc import Rpc, Statement
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.store import MemoryStore


@dataclass(frozen=True)
class Services:
    """The adapters and settings of one worker. `clock` is seconds since epoch."""

    settings: Settings
    store: MemoryStore
    feishu: FeishuClient
    own_person: BotIdentity
    people: People
    manager: Manager
    rpc: Rpc
    hooks: Hooks
    meter: Meter = field(default_factory=Meter)
    sight: VisionProbe = field(default_factory=VisionProbe)  # of the model that answers
    files: FileReader = field(default_factory=FileReader)
    judge: Judge | None = None
    summarise: Summarise = extractive_summary
    embedder: Embedder | None = None
    # puts the conversation's background job into the queue; raises `QueueUnavailable`
    queue_tending: Callable[[AgentMemoryContext], Awaitable[None]] | None = None
    # queues what comes after a turn (`bot.queue.table.private_lookup_statement`), where the
    # memory cannot; raises `QueueUnavailable`
    run_on_queue: Callable[[Statement], Awaitable[None]] | None = None
    # queues the next step of an import (`JobTable.queue_import`); raises `QueueUnavailable`
    queue_import: Callable[[int, Mapping[str, object]], Awaitable[None]] | None = None
    # calls as people; None: the installation has no USER_TOKEN_KEY
    access: PersonalAccess | None = None
    # queues what is next for a person's own tokens, in so many seconds (`JobTable.queue_connect`);
    # raises `QueueUnavailable`
    queue_connect: Callable[[FeishuPerson, float], Awaitable[object]] | None = None
    authors: AuthorNames = field(default_factory=AuthorNames)  # of imported messages
    # executes a confirmed action; raises `ActionAlreadyRun` and `ServerDown`
    perform: Callable[[PendingAction], Awaitable[ActionResult]] | None = None
    queue: QueueOperations | None = None
    transcripts: HeldTranscripts = field(default_factory=HeldTranscripts)
    rates: PersonRates = field(default_factory=PersonRates)
    shares: PerUserSemaphore = field(default_factory=PerUserSemaphore)
    # whether this worker is to tell a person that requests are skipped
    tells_of_rate: Callable[[FeishuPerson], Awaitable[bool]] | None = None
    stops: Stops = field(default_factory=Stops)  # the turns that run in this worker
    # whether a turn was asked to stop before this worker had it; raises `QueueUnavailable`
    is_stopped: Callable[[str], Awaitable[bool]] | None = None
    membership: Membership | None = None  # who is in which chat; learned in the background
    denials: Denials = field(default_factory=Denials)
    # message_id -> when it was last read again for edits (`bot.answering.edits`)
    reread: dict[str, float] = field(default_factory=dict)
    records: PendingTurnRecords = field(default_factory=PendingTurnRecords)
    allowance: DailyTokenLimit = field(default_factory=DailyTokenLimit)
    tally: UsageCounter = field(default_factory=UsageCounter)
    quota: MonthlyQuota = field(default_factory=MonthlyQuota)
    clock: Callable[[], float] = field(default=time.time)

    def now(self) -> datetime:
        """The one clock of everything that people and models read: in the zone of the settings."""
        return self.at(self.clock())

    def asked_at(self, created_ms: int) -> datetime:
        """When a message was written, from which its “tomorrow” counts: Feishu may deliver it hours
        later. `created_ms` since epoch; now if it is 0 or lies ahead."""
        now_s = self.clock()
        return self.at(min(created_ms / 1000, now_s) if created_ms else now_s)

    def at(self, seconds: float) -> datetime:
        """A moment in that zone; `seconds` since epoch."""
        return datetime.fromtimestamp(seconds, self.settings.zone)
