"""Cards of ours that must not be shown any more, because what they answered was taken back.

For the service: ids only. All methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

from memory.rpc import Rpc

_AT_A_TIME = 20


class Withdrawals:
    """What is still to be withdrawn, over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def take(self) -> tuple[str, ...]:
        """Some message_ids that are due; each is due again later unless `done` is called."""
        return tuple(await self._rpc.call("take_withdrawals", {"p_limit": _AT_A_TIME}, None))

    async def done(self, message_id: str) -> None:
        """Nothing more is to be done about the card."""
        await self._rpc.call("drop_withdrawal", {"p_message_id": message_id}, None)

    async def forget_turns(self) -> int:
        """Turns that forgot something and are over keep no words; returns how many."""
        return int(await self._rpc.call("drop_forgetting_turns", {}, None))
