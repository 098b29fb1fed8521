"""CardKit in memory: what was called, and what it shall refuse."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.feishu.cards import STAGE_ID
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from bot.feishu.models import SentMessage
from memory.errors import StoreUnavailable
from memory.scope import AgentMemoryContext
from memory.tables.cards import CardStore, OpenCard

Call = tuple[str, Mapping[str, Any]]
BLOCK = 1000


class CardPlatform(FeishuClient):
    """Records calls by name; `refuse(name, failure, …)` makes the next ones fail in that order."""

    def __init__(self) -> None:  # the base class would open connections
        self.calls: list[Call] = []
        self._refusals: dict[str, list[FeishuFailure | None]] = defaultdict(list)
        self._changed = asyncio.Event()
        self.gates: dict[str, asyncio.Event] = {}

    def refuse(self, name: str, *failures: FeishuFailure | None) -> None:
        self._refusals[name] += failures

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [call for called, call in self.calls if called == name]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns once a call made it true; a test that waits in vain fails after a minute."""
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def create_card(self, card: Mapping[str, Any]) -> str:
        await self._call("create_card", card=card)
        return "card_1"

    async def reply(self, message_id: str, **call: Any) -> SentMessage:
        await self._call("reply", message_id=message_id, **call)
        return SentMessage("om_card")

    async def stream_text(
        self, card_id: str, element_id: str, content: str, sequence: int, uuid: str
    ) -> None:
        name = "stream_text" if element_id != STAGE_ID else "stage"
        await self._call(name, content=content, sequence=sequence, uuid=uuid)

    async def card_settings(
        self, card_id: str, settings: Mapping[str, Any], sequence: int, uuid: str
    ) -> None:
        await self._call("card_settings", settings=settings, sequence=sequence, uuid=uuid)

    async def batch_update_card(
        self, card_id: str, actions: Sequence[Mapping[str, Any]], sequence: int, uuid: str
    ) -> None:
        await self._call("batch_update_card", actions=actions, sequence=sequence, uuid=uuid)

    async def update_card(
        self, card_id: str, card: Mapping[str, Any], sequence: int, uuid: str
    ) -> None:
        await self._call("update_card", card=card, sequence=sequence, uuid=uuid)

    async def patch_card(self, message_id: str, card_json: str) -> None:
        await self._call("patch_card", message_id=message_id, card=card_json)

    async def delete_message(self, message_id: str) -> None:
        await self._call("delete_message", message_id=message_id)

    async def _call(self, name: str, **call: Any) -> None:
        self.calls.append((name, call))
        self._changed.set()
        if name in self.gates:
            await self.gates[name].wait()
        failure = self._refusals[name].pop(0) if self._refusals[name] else None
        if failure:
            raise failure


class KeptCards(CardStore):
    """`memory.tables.cards` in memory, for one turn; `away` makes every call fail."""

    def __init__(self, kept: OpenCard | None = None) -> None:
        self.kept = kept
        self.notes: list[str] = []
        self.stop_id: str | None = None
        self.away = False
        self.failed = asyncio.Event()
        self._blocks = 1 if kept is None else kept.numbers.stop // BLOCK

    async def keep(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        card_id: str,
        reply_to: str,
        in_thread: bool,
        stop_id: str | None = None,
    ) -> OpenCard:
        self._note("kept")
        self.stop_id = stop_id
        self.kept = OpenCard(turn_id, context, card_id, reply_to, in_thread, range(1, BLOCK + 1))
        return self.kept

    async def resume(self, context: AgentMemoryContext, *, turn_id: str) -> OpenCard | None:
        self._note("resumed")
        assert self.kept is not None
        first = self._blocks * BLOCK + 1
        self._blocks += 1
        kept = self.kept
        return OpenCard(
            turn_id, context, kept.card_id, kept.reply_to, True, range(first, first + BLOCK)
        )

    async def mark_shown(self, card: OpenCard, message_id: str) -> None:
        self._note(f"sent {message_id}")

    async def mark_finished(self, card: OpenCard) -> None:
        self._note("closed")

    def _note(self, note: str) -> None:
        if self.away:
            self.failed.set()
            raise StoreUnavailable("away")
        self.notes.append(note)
