"""Learns which chats there are and who is in which group: from messages, from events, and by asking
Feishu. Never on the way of a message: what is not known yet counts as not being in, and names and
chats are written in batches behind the turns.

Source: Feishu, "Obtain group member list" (bots are left out; the bot must be in the group) and
"Obtain group information".
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.errors import OUT_OF_CHAT, Action, Denials, FeishuError, FeishuFailure, Unreachable
from bot.feishu.other_events import ChatNews
from bot.listening.turn_request import TurnRequest
from bot.process import metrics
from bot.process.concurrency import cancel_tasks
from memory.errors import StoreError, StoreUnavailable
from memory.tables.directory import ChatStore, ChatType, PeopleStore, SeenChat, Sighting, TakenChat

log = structlog.get_logger()

Api = Literal["chat info", "chat members"]

_A_MINUTE = 30  # chats, for all workers together
_CHAT_S = 300.0  # for all pages of one
_DENIED_S = 3600
_MET_AGAIN_MS = 3_600_000
_MOST_REMEMBERED = 20_000
_TOPICS_S = 60.0
_TYPES: dict[str, ChatType] = {
    "p2p": "p2p",
    "group": "group",
    "topic": "group",
    "topic_group": "group",
}


@dataclass
class _Asking:
    """A chat that is asked about, and the API that is asked now."""

    chat: TakenChat
    api: Api


class Membership:
    """What this worker learns of chats; `news` is set when there may be one to ask about."""

    def __init__(
        self,
        feishu: FeishuClient,
        table: ChatStore,
        *,
        keeper: ChatKeeper | None = None,
        denials: Denials | None = None,
    ) -> None:
        self.news = asyncio.Event()
        self._feishu = feishu
        self._table = table
        self._keeper = keeper or ChatKeeper(table, on_new=self.news.set)
        self._denials = denials or Denials(stands_s=_DENIED_S)
        self._denied_apis: set[Api] = set()
        self._met: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._topics: dict[str, tuple[bool, float]] = {}

    async def close(self) -> None:
        """Writes what waits, if that is possible at once."""
        await self._keeper.close()

    async def find(self) -> int:
        """Makes chats known that only the memory knows. Returns how many. Raises `StoreError`."""
        return await self._table.find()

    def meet(self, request: TurnRequest) -> None:
        """Learns where a message came from; written behind the turns, once an hour for a chat."""
        key = (request.tenant_key, request.chat_id)
        if request.create_time_ms - self._met.get(key, 0) < _MET_AGAIN_MS:
            return
        self._met[key] = request.create_time_ms
        self._met.move_to_end(key)
        if len(self._met) > _MOST_REMEMBERED:
            self._met.popitem(last=False)
        self._keeper.keep(SeenChat(*key, _TYPES.get(request.chat_type), request.create_time_ms))

    async def is_topic_group(self, chat_id: str) -> bool:
        """Whether a group is known to consist of topics; remembered for a minute. Raises
        `StoreError`."""
        is_topic, at = self._topics.get(chat_id, (False, -_TOPICS_S))
        if time.monotonic() - at >= _TOPICS_S:
            is_topic = await self._table.is_topic_group(chat_id)
            if len(self._topics) >= _MOST_REMEMBERED:
                self._topics.clear()
            self._topics[chat_id] = is_topic, time.monotonic()
        return is_topic

    async def hear(self, news: ChatNews) -> None:
        """Stores an event of a chat. Raises `StoreError`; it can be repeated."""
        where = (news.tenant_key, news.chat_id)
        change: object = None
        if news.what == "joined":
            change = await self._table.add(*where, news.people, at_ms=news.at_ms)
            await self._table.describe(
                news.chat_id, chat_type=None, name=news.name, at_ms=news.at_ms
            )
        elif news.what == "left":
            change = await self._table.remove(*where, news.people, at_ms=news.at_ms)
        elif news.what == "entered":
            await self._table.enter(*where, name=news.name, at_ms=news.at_ms)
            if news.operator:
                await self._table.save_adder(*where, news.operator)
            self.news.set()
        elif news.what == "gone":
            change = await self._note_leaving(*where, news.at_ms)
        elif news.what == "renamed":
            await self._table.describe(
                news.chat_id, chat_type=None, name=news.name, at_ms=news.at_ms, topics=news.topics
            )
            self._topics.pop(news.chat_id, None)
        log.info("chat.news", what=news.what, chat_id=news.chat_id, changed=change)

    async def refresh(self) -> int:
        """Asks Feishu about the chats that are due. Returns how many were asked about. Raises
        `StoreError`; what Feishu does not say is asked again later."""
        due_chats = await self._table.take(
            a_minute=_A_MINUTE,
            infos=not self._denials.stands("chat info"),
            members=not self._denials.stands("chat members"),
        )
        for chat in due_chats:
            await self._learn(
                _Asking(chat, "chat info" if chat.chat_type is None else "chat members")
            )
        return len(due_chats)

    async def _learn(self, asking: _Asking) -> None:
        outcome = "done"
        try:
            async with asyncio.timeout(_CHAT_S):
                await self._ask(asking)
        except (FeishuFailure, TimeoutError) as exc:
            outcome = await self._not_told(asking, exc)
        else:
            self._is_allowed(asking.api)
        metrics.MEMBERS_REFRESHED.labels(outcome=outcome).inc()

    async def _ask(self, asking: _Asking) -> None:
        """Type, members of a group, and its name where none is known."""
        chat, chat_type = asking.chat, asking.chat.chat_type
        if chat_type is None:
            chat_type = await self._ask_info(chat)
            self._is_allowed("chat info")
        if chat_type == "group":
            asking.api = "chat members"
            members = await self._feishu.chat_members(chat.chat_id)
            self._is_allowed("chat members")
            change = await self._table.save_members(chat.chat_id, members, asked_ms=chat.asked_ms)
            log.info(
                "members.read",
                chat_id=chat.chat_id,
                members=len(members),
                joined=change.joined if change else None,
                left=change.left if change else None,
            )
        if chat.chat_type and not chat.named and not self._denials.stands("chat info"):
            asking.api = "chat info"
            await self._ask_info(chat)

    async def _ask_info(self, chat: TakenChat) -> ChatType:
        info = await self._feishu.chat_info(chat.chat_id)
        chat_type = _TYPES.get(info.chat_mode)
        name = "" if chat_type == "p2p" else info.name
        await self._table.describe(
            chat.chat_id, chat_type=chat_type, name=name, at_ms=chat.asked_ms, topics=info.topics
        )
        if chat_type is None:
            raise Unreachable(f"a chat of an unknown mode {info.chat_mode!r}")
        return chat_type

    async def _not_told(self, asking: _Asking, exc: FeishuFailure | TimeoutError) -> str:
        """What becomes of a chat that Feishu said nothing about; returns the outcome."""
        chat = asking.chat
        code = exc.code if isinstance(exc, FeishuError) else None
        if code in OUT_OF_CHAT and await self._note_leaving("", chat.chat_id, chat.asked_ms):
            log.info("chat.gone", chat_id=chat.chat_id, code=code)
            return "gone"
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            self._say_denied(asking.api, exc)
            await self._table.postpone(chat.chat_id, wait_s=_DENIED_S)
            return "denied"
        log.warning(
            "members.not_told",
            chat_id=chat.chat_id,
            api=asking.api,
            error=type(exc).__name__,
            code=code,
        )
        await self._table.postpone(chat.chat_id)
        return "failed"

    async def _note_leaving(self, tenant_key: str, chat_id: str, at_ms: int) -> bool:
        """The bot is out as of `at_ms`; the next message from there is told of at once."""
        for key in [key for key in self._met if key[1] == chat_id]:
            del self._met[key]
        return await self._table.leave(tenant_key, chat_id, at_ms=at_ms)

    def _say_denied(self, api: Api, exc: FeishuError) -> None:
        """Once, until it is allowed again; asked again every hour."""
        self._denials.note(api)
        if api not in self._denied_apis:
            self._denied_apis.add(api)
            log.error(
                "members.denied",
                api=api,
                code=exc.code,
                scopes=exc.scopes,
                url=exc.permission_url,
                effect="people are shown less of what was said in their groups",
                next_step="grant the app one of these scopes and publish a version",
            )

    def _is_allowed(self, api: Api) -> None:
        if api in self._denied_apis:
            self._denied_apis.discard(api)
            log.info("members.allowed", api=api)


_GATHER_S = 1.0
_RETRY_FIRST_S = 15.0
_RETRY_LAST_S = 600.0
_BATCH = 200
_WAITING = 20_000
_LAST_WRITE_S = 2.0
_NAME_CHARACTERS = 200

T = TypeVar("T")
Key = tuple[str, str]


class Keeper(Generic[T]):
    """What was met and is not yet in the table, by tenant and id.

    `write` stores a batch and returns how many are new there; `on_new` is told when any were.
    `what` names it in the log.
    """

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[int]],
        *,
        what: str,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._store = write
        self._what = what
        self._on_new = on_new
        self._gather_s = gather_s
        self._retry_first_s = retry_first_s
        self._waiting: dict[Key, T] = {}
        self._writing: asyncio.Task[None] | None = None

    def later(self, key: Key, value: T) -> None:
        """Remembers to write a value; the last one of a key counts."""
        if len(self._waiting) >= _WAITING and key not in self._waiting:
            return  # the memory is away for long; they are met again
        self._waiting[key] = value
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    def drop(self, tenant_key: str, id: str) -> None:
        """What waits of somebody is not written."""
        self._waiting.pop((tenant_key, id), None)

    async def close(self) -> None:
        """Writes what waits, if that is possible at once."""
        if self._writing is not None:
            await cancel_tasks([self._writing])
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(_LAST_WRITE_S):
                while self._waiting:
                    await self._write_batch()

    async def _write(self) -> None:
        retry_s = self._retry_first_s
        await asyncio.sleep(self._gather_s)
        while self._waiting:
            try:
                await self._write_batch()
                retry_s = self._retry_first_s
            except StoreUnavailable:
                log.warning(
                    "keeping.postponed",
                    what=self._what,
                    waiting=len(self._waiting),
                    retry_in_s=retry_s,
                )
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, _RETRY_LAST_S)
            except StoreError as exc:
                log.error(
                    "keeping.refused", what=self._what, error=type(exc).__name__, code=exc.code
                )

    async def _write_batch(self) -> None:
        """Writes the oldest that wait. If the memory is away they wait on, unless they were met
        again meanwhile."""
        batch = dict(list(self._waiting.items())[:_BATCH])
        for key in batch:
            del self._waiting[key]
        try:
            new = await self._store(list(batch.values()))
        except (StoreUnavailable, asyncio.CancelledError):
            self._waiting = batch | self._waiting
            raise
        if new:
            self._on_new()


class NameKeeper(Keeper[Sighting]):
    """Names as they were seen, for the table `people`."""

    def __init__(
        self,
        table: PeopleStore,
        *,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        super().__init__(
            table.remember,
            what="names",
            on_new=on_new,
            gather_s=gather_s,
            retry_first_s=retry_first_s,
        )

    def keep(self, sighting: Sighting) -> None:
        """Remembers to write a sighting; the later one of a person counts, as met if any was."""
        key = (sighting.tenant_key, sighting.open_id)
        waiting = self._waiting.get(key)
        was_met = sighting.met or (waiting is not None and waiting.met)
        self.later(key, replace(_storable(sighting), met=was_met))


class ChatKeeper(Keeper[SeenChat]):
    """Chats as messages came from them, for the table `chats`."""

    def __init__(
        self,
        table: ChatStore,
        *,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
    ) -> None:
        super().__init__(table.remember, what="chats", on_new=on_new, gather_s=gather_s)

    def keep(self, chat: SeenChat) -> None:
        """Remembers to write where a message came from."""
        self.later((chat.tenant_key, chat.chat_id), chat)


def _storable(sighting: Sighting) -> Sighting:
    """Without what UTF-8 or Postgres cannot hold: one name must not stop the others."""
    name = sighting.name.encode("utf-8", "ignore").decode().replace("\x00", "")
    return replace(sighting, name=name[:_NAME_CHARACTERS])
