"""Takes jobs from the queue and ends them: many at a time, in order per lock, and only a few at
once per person.

The process that accepts an event hands most jobs to a worker directly; workers take the others from
the table, no more than can begin at once. A job that waits takes no place of others
(`bot.process.concurrency`), but a worker has only so many jobs in hand. It retries writing a
job's end until the database takes it, so an outage delays a conversation but does not block it for
good. A job that fails because the database goes away runs again here as soon as it is back. Jobs of
a worker that died, or that a worker lost track of, are handed back within seconds. A worker takes
jobs only when it knows that some are waiting."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from weakref import WeakValueDictionary

import structlog

from bot.process.concurrency import ConcurrencySlots, cancel_tasks, without_slot, working_for
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Dead, Job, RunAgain, after_failure
from bot.queue.table import (
    Hearing,
    JobTable,
    Presence,
    Round,
    ending_if_silent_statement,
    ending_statement,
    taken_job,
)
from memory.backends.connections import leads_to_standby, reconnect_pause_s
from memory.errors import StoreUnavailable
from memory.rpc import Statement
from memory.scope import FeishuPerson

log = structlog.get_logger()
ROUND_S = 1.0
_SECOND_LOOK_S = 0.2
_IN_HAND = 256
_CLOCKS_DIFFER_S = 2.0
_GRACE_S = 7.0
_LAST_WORDS_S = 1.5
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_REPEATS = 6  # of a job in a row whose database goes away; a job may be why it does
OutcomeT = TypeVar("OutcomeT", RunAgain, RunAgain | Dead)


@dataclass(slots=True)
class Lease:
    """A job while this worker holds it.

    To end the job in the same transaction as its last step, run `ending()` there and pass its
    result to `ended`. `take` receives the next job of the lock. `unsure`: something was being sent,
    and nobody knows (yet) whether it arrived.
    """

    job: Job
    worker: int
    take: Callable[[Job], None]
    is_over: bool = False
    unsure: bool = False

    def ending(self) -> Statement:
        """The statement that ends the job."""
        return ending_statement(self.job, self.worker)

    def ending_if_silent(self, message_id: str) -> Statement:
        """The same, if that transaction has stored that the message is not answered."""
        return ending_if_silent_statement(self.job, self.worker, message_id)

    def note_end(self, result: object) -> None:
        """Notes that the job has ended, and takes the next job if `result` names one."""
        self.is_over = True
        if following := taken_job(result):
            self.take(following)


@dataclass(frozen=True, slots=True)
class Handlers:
    """`handle` does a job; what it raises decides about another attempt (`jobs.after_failure`).

    `give_up` ends a job that gets no other attempt, and returns whether it told the person who
    asked. `took_over` receives how many jobs of dead workers this one took over. `note_workers`
    receives the number of workers on all machines. `stop_turns` receives the ids of turns that must
    stop, on any worker; the same id may come several times.
    """

    handle: Callable[[Lease], Awaitable[None]]
    give_up: Callable[[Lease, str], Awaitable[bool]]
    took_over: Callable[[int], None] = field(default=lambda _: None)
    note_workers: Callable[[int], None] = field(default=lambda _: None)
    stop_turns: Callable[[Iterable[str]], None] = field(default=lambda _: None)


class Consumer:
    """One worker of the queue: `concurrency` jobs work at the same time, and `in_hand` at most work
    or wait. The process that sees another worker die sets `fallen`. `clock` gives seconds since
    epoch."""

    def __init__(
        self,
        table: JobTable,
        database_url: str,
        handlers: Handlers,
        *,
        concurrency: int,
        in_hand: int = _IN_HAND,
        grace_s: float = _GRACE_S,
        fallen_event: asyncio.Event | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._handlers = handlers
        self._in_hand = in_hand
        self._grace_s = grace_s
        self._clock = clock
        self._running: dict[int, asyncio.Task[None]] = {}
        self._unstarted: set[int] = set()
        self._news, self._room_made = asyncio.Event(), asyncio.Event()
        self._places = ConcurrencySlots(concurrency, self._room_made.set)
        self._worker_died = fallen_event or asyncio.Event()
        self._closing = False
        self._claiming = asyncio.Lock()
        self._suspects: frozenset[int] = frozenset()
        self._missing: frozenset[int] = frozenset()
        self._looked_at_s = self._alarmed_until = 0.0
        self._handed_back: set[int] = set()
        self._clock_is_wrong = self._away = False
        hearing = Hearing(
            self._news.set, self._start_handed, lambda turn: handlers.stop_turns((turn,))
        )
        self._presence = Presence(database_url, hearing, places=in_hand)

    async def work(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set. Then running jobs have `grace_s` to end, and the rest are
        handed back. Raises `QueueUnavailable` when the queue is away at the start."""
        await self._presence.begin()
        self._news.set()
        rounds = asyncio.create_task(self._make_rounds())
        waiting = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                await self._take()
                await self._something_new(waiting)
        finally:
            waiting.cancel()
            await cancel_tasks([rounds])
            await self._finish()
            await self._presence.end()

    async def _take(self) -> None:
        """Takes the waiting jobs while there is room."""
        while self._news.is_set() and (room := self._room()) > 0:
            self._news.clear()
            try:
                async with self._claiming:
                    jobs = await self._table.take(self._presence.worker, room)
                    for job in jobs:
                        self._start(job)
            except QueueUnavailable as exc:
                self._say_away(exc)
                return  # the next round finds the due jobs
            if len(jobs) == room:
                self._news.set()

    async def _something_new(self, stop_task: asyncio.Task[bool]) -> None:
        """Waits until there may be a job to take and room for it, or until `stop_task` is done."""
        self._room_made.clear()
        wanted_event = self._news if self._room() else self._room_made
        change_task = asyncio.create_task(wanted_event.wait())
        await asyncio.wait({stop_task, change_task}, return_when=asyncio.FIRST_COMPLETED)
        change_task.cancel()

    def _start_handed(self, job: Job) -> None:
        """Starts a job that was handed to this worker, unless it was handed back as missing."""
        if job.id not in self._running and job.id not in self._handed_back:
            self._start(job)

    def _room(self) -> int:
        """How many more jobs this worker can take: those that can begin at once."""
        free_places = self._in_hand - len(self._running)
        return max(0, min(self._places.to_spare - len(self._unstarted), free_places))

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._do(Lease(job, self._presence.worker, self._start)))
        self._running[job.id] = task
        self._unstarted.add(job.id)
        task.add_done_callback(lambda _: self._forget(job.id))

    def _forget(self, job: int) -> None:
        self._running.pop(job, None)
        self._unstarted.discard(job)
        self._room_made.set()

    async def _do(self, lease: Lease) -> None:
        """Runs one job and writes its end."""
        self._unstarted.discard(lease.job.id)
        outcome = RunAgain(0.0) if self._closing else await self._outcome(lease)
        if not lease.is_over:
            await self._write_end(lease, outcome)

    async def _outcome(self, lease: Lease) -> RunAgain | Dead | None:
        """The outcome of the job; None: it is done.

        While the database goes away, the job stays with this worker and is run again: that counts
        as no attempt.
        """
        repeats = 0
        try:
            while True:
                began = time.monotonic()
                try:
                    return await self._handle(lease)
                except Exception as exc:  # noqa: BLE001  after any error the job must end
                    if outcome := self._after(lease, exc, began, repeats):
                        return self._note(lease, outcome)
                repeats += 1
                await self._table.reachable()
        except asyncio.CancelledError:
            return self._note(lease, RunAgain(0.0))

    async def _handle(self, lease: Lease) -> Dead | None:
        with self._places.hold(_chat_of(lease.job)):
            if reason := lease.job.given_up:
                return Dead(reason, {"excused": await self._handlers.give_up(lease, reason)})
            await self._handlers.handle(lease)
        return None

    def _after(
        self, lease: Lease, failure: Exception, began: float, repeats: int
    ) -> RunAgain | Dead | None:
        """What becomes of the job, or None if it runs again here as soon as the database is back.

        `began` (monotonic seconds) is when it ran last. If something may have been sent, the
        database has to know of it before the job runs again.
        """
        if self._was_interrupted(lease, failure, began):
            if not lease.unsure and repeats < _REPEATS:
                return None
            if lease.unsure and lease.job.attempt <= _REPEATS:
                return RunAgain(0.0)
        return after_failure(lease.job, failure, self._clock())

    def _was_interrupted(self, lease: Lease, failure: Exception, began: float) -> bool:
        """True if the job failed because the database went away since `began`."""
        if lease.is_over or self._closing:
            return False
        kinds = (QueueUnavailable, StoreUnavailable)
        no_answer = isinstance(failure, kinds) or isinstance(failure.__cause__, kinds)
        return no_answer and self._table.lost_since(began)

    def _note(self, lease: Lease, outcome: OutcomeT) -> OutcomeT:
        """The outcome, with the time if the attempt may have sent something for the first time."""
        if not lease.unsure or lease.job.maybe_sent_ms:
            return outcome
        note = {**outcome.note, "maybe_sent_ms": int(self._clock() * 1000)}
        return replace(outcome, note=note)

    async def _write_end(self, lease: Lease, outcome: RunAgain | Dead | None) -> None:
        """Writes the outcome of the job, and retries until the queue takes it."""
        pause_s = 0.0
        while True:
            began = time.monotonic()
            try:
                await self._write_once(lease, outcome)
            except QueueUnavailable as exc:
                if not pause_s:
                    log.warning("job.end_waits", job=lease.job.id, error=str(exc))
                growing_s = 0.0 if self._table.lost_since(began) else 2 * pause_s
                pause_s = min(max(growing_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
                await self._table.reachable()
                await asyncio.sleep(pause_s)
            else:
                return

    async def _write_once(self, lease: Lease, outcome: RunAgain | Dead | None) -> None:
        match outcome:
            case None:
                lease.note_end(await self._table.end(lease.job, lease.worker))
            case RunAgain():
                await self._table.again(lease.job, lease.worker, outcome)
                self._news.set()  # another job of the same lock may be free to run
            case Dead():
                await self._table.fail(lease.job, lease.worker, outcome)
                self._news.set()

    async def _make_rounds(self) -> None:
        """Makes a round at once and then every second: reports this worker alive, looks for stalls.

        The first round comes at once because this worker may replace a dead one.
        """
        while True:
            try:
                if was_lost := self._presence.lost.is_set():
                    await self._come_back()
                await self._put_right(await self._look())
                self._away = False
                await self._pause(
                    self._next_round_s(was_lost), self._worker_died, self._presence.lost
                )
            except QueueUnavailable as exc:
                self._say_away(exc)
                if leads_to_standby(exc.__cause__):
                    self._presence.lost.set()  # its session leads there, too
                await self._pause(reconnect_pause_s(exc.__cause__ or exc), self._worker_died)

    def _say_away(self, exc: QueueUnavailable) -> None:
        """Writes one line for each time that the queue goes away."""
        if not self._away:
            log.warning("queue.away", error=str(exc))
        self._away = True

    def _next_round_s(self, was_lost: bool) -> float:
        """How long (s) to wait for the next round: shorter when another worker seems to have died.

        A worker that has just lost its own session waits as usual: the others may have lost no more
        than their sessions, too.
        """
        is_alarmed = time.monotonic() < self._alarmed_until
        return _SECOND_LOOK_S if is_alarmed or (self._suspects and not was_lost) else ROUND_S

    async def _pause(self, seconds: float, *events: asyncio.Event) -> None:
        """Waits for the next round, or for one of `events`, which cannot wait so long."""
        waiting = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await cancel_tasks(waiting)
        if self._worker_died.is_set():
            self._worker_died.clear()
            self._alarmed_until = time.monotonic() + ROUND_S

    async def _look(self) -> Round:
        """Looks at the queue and starts the jobs it gives.

        A job counts as missing only if it was missing a whole round ago: it may be on its way.
        """
        async with self._claiming:
            is_due = time.monotonic() - self._looked_at_s > ROUND_S / 2
            missing = self._missing if is_due else frozenset()
            before = self._clock()
            round_ = await self._table.look_round(
                self._presence.worker, self._running, self._room(), missing
            )
            self._compare_clocks(before, round_.now_s, self._clock())
            if is_due:
                self._missing, self._looked_at_s = round_.missing, time.monotonic()
            self._handed_back |= round_.handed_back
            for job in round_.jobs:
                self._start(job)
        return round_

    def _compare_clocks(self, before: float, there: float, after: float) -> None:
        """Warns once when this machine's clock and the database's begin to differ."""
        ahead_s = max(before - there, 0.0) - max(there - after, 0.0) if there else 0.0
        is_wrong = abs(ahead_s) > _CLOCKS_DIFFER_S
        if is_wrong and not self._clock_is_wrong:
            step = "set this machine's clock (NTP), or the database's"
            log.warning("clock.differs", ahead_s=round(ahead_s, 1), next_step=step)
        self._clock_is_wrong = is_wrong

    async def _put_right(self, round_: Round) -> None:
        if not round_.known:
            await self._come_back()
        self._handlers.note_workers(round_.workers)
        self._handlers.stop_turns(round_.stops)
        if round_.handed_back:
            log.warning("queue.handed_back", jobs=len(round_.handed_back))
        # A worker is gone when two rounds in a row miss it: an interrupted session is back by then.
        suspects = frozenset(round_.suspects)
        gone_workers, self._suspects = suspects & self._suspects, suspects
        jobs_taken = await self._table.take_over(sorted(gone_workers)) if gone_workers else 0
        if jobs_taken:
            self._handlers.took_over(jobs_taken)
            log.warning("queue.took_over", jobs=jobs_taken)
        if round_.handed_back or jobs_taken:
            self._news.set()

    async def _come_back(self) -> None:
        """Begins a new session. If others have taken over this worker's jobs, cancels them here."""
        if not await self._presence.begin():
            log.warning("queue.replaced", jobs=len(self._running))
            for task in self._running.values():
                task.cancel()
        self._news.set()

    async def _finish(self) -> None:
        """Lets running jobs end, and hands back those that do not and those that still arrive."""
        self._closing = True
        with contextlib.suppress(QueueUnavailable, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._table.close_places(self._presence.worker)
        if self._running:
            await asyncio.wait(set(self._running.values()), timeout=self._grace_s)
        running_jobs = set(self._running.values())
        for task in running_jobs:
            task.cancel()
        if running_jobs:
            await asyncio.wait(running_jobs, timeout=_LAST_WORDS_S)
        for task in set(self._running.values()):  # the database is away: others take these over
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task}, timeout=_LAST_WORDS_S)


def _chat_of(job: Job) -> str:
    """The chat whose share a job takes: locks are `feishu:{chat}:{root}`, or of no chat."""
    lock = job.lock or ""
    return lock if lock.startswith("feishu:doc:") else ":".join(lock.split(":")[:2])


class PerUserSemaphore:
    """At most `at_once` for each person; the others wait in order. For one event loop."""

    def __init__(self, at_once: int = 8) -> None:
        self._at_once = at_once
        self._places: WeakValueDictionary[FeishuPerson, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, asker: FeishuPerson) -> AsyncIterator[None]:
        """Holds one of the person's places while it is entered."""
        places = self._places.setdefault(asker, asyncio.Semaphore(self._at_once))
        if places.locked():
            with without_slot():
                await places.acquire()
        else:
            await places.acquire()
        try:
            with working_for(asker.open_id):
                yield
        finally:
            places.release()
