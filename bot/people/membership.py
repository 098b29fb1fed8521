"""Learns which chats there are and who is in which group: from messages, from events, and by asking
Feishu. Never on the way of a message: what is not known yet counts as not being in.

Source: Feishu, "Obtain group member list" (bots are left out; the bot must be in the group) and
"Obtain group information".
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.denials import Denials
from bot.feishu.errors import OUT_OF_CHAT, Action, FeishuError, FeishuFailure, Unreachable
from bot.feishu.other_events import ChatNews
from bot.listening.turn_request import TurnRequest
from bot.people.write_behind import ChatKeeper
from bot.process import metrics
from memory.tables.directory import ChatStore, ChatType, SeenChat, TakenChat

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
