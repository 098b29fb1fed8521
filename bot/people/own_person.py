"""Who the bot itself is."""

from __future__ import annotations

import asyncio

from bot.feishu.client import FeishuClient
from bot.feishu.models import BotInfo
from bot.text.roster import Person


class OwnPerson:
    """Who the bot itself is; asked of Feishu once, by whoever needs it first."""

    def __init__(self, feishu: FeishuClient) -> None:
        self._feishu = feishu
        self._known: BotInfo | None = None
        self._lock = asyncio.Lock()

    async def look_up(self) -> Person:
        """The bot as open_id and name. Raises `FeishuFailure` while Feishu cannot be reached."""
        async with self._lock:
            self._known = self._known or await self._feishu.bot_info()
        return Person(self._known.open_id, self._known.app_name or "Bot", is_bot=True)
