"""What is said and not stored: first words, an offer, a notice that words go, a question to one
person alone. A key takes the place of the turn, so that each is sent once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.feishu import cards
from bot.outbox.delivery import Aside, Delivered, Target, deliver
from bot.outbox.finding import sending
from bot.queue.consumer import Lease
from bot.services import Services


async def say(
    services: Services,
    target: Target | Aside,
    markdown: str,
    *,
    key: str,
    number: int = 0,
    names: Mapping[str, str] | None = None,
    buttons: Sequence[cards.Button] = (),
    lease: Lease | None = None,
) -> Delivered:
    """Sends a card; raises as `deliver` does. `names` as there."""
    with sending(lease):
        return await deliver(
            services.feishu,
            target,
            turn_id=key,
            chunk=number,
            content=markdown,
            names=names or {},
            buttons=buttons,
        )
