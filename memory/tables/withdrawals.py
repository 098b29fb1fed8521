"""Cards of ours that must not be shown any more, because what they answered was taken back.

For the service: ids only. All methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.rpc import Rpc

_AT_A_TIME = 20


_ANSWERS = "of:"


@dataclass(frozen=True, slots=True)
class Due:
    """Something to withdraw: a card of ours (`id`) in a chat; `of_one` may be shown to one person
    beside another. With `question`: the cards that answer this message and were sent at `since_ms`
    (ms since epoch) or later, which nobody reported. `chats`: where a card may stand, for the turn
    that named it may have lied. `age_s`: for how long that is known."""

    id: str
    chat_id: str
    chats: tuple[str, ...]
    age_s: float
    since_ms: int
    of_one: bool

    @property
    def question(self) -> str:
        return self.id.removeprefix(_ANSWERS) if self.id.startswith(_ANSWERS) else ""


class Withdrawals:
    """What is still to be withdrawn, over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def take(self) -> tuple[Due, ...]:
        """Some that are due; each is due again later unless `done` is called."""
        rows = await self._rpc.call("take_due_withdrawals", {"p_limit": _AT_A_TIME}, None)
        return tuple(
            Due(
                row["message_id"],
                row["chat_id"],
                tuple(row["chats"]),
                float(row["age_s"]),
                row["since_ms"],
                row["of_one"],
            )
            for row in rows
        )

    async def done(self, due: Due) -> None:
        """Nothing more is to be done about it."""
        await self._rpc.call("drop_withdrawal", {"p_message_id": due.id}, None)

    async def forget_turns(self) -> int:
        """Turns that forgot something and are over keep no words; returns how many."""
        return int(await self._rpc.call("drop_forgetting_turns", {}, None))
