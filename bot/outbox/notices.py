"""What is said and not stored: first words, an offer, a notice that words go, a question to one
person alone. A key takes the place of the turn, so that each is sent once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.feishu import cards
from bot.feishu.client import FeishuClient
from bot.feishu.models import SentMessage
from bot.outbox.delivery import Aside, Delivered, Target, deliver
from bot.outbox.finding import sending
from bot.queue.consumer import Lease
from bot.services import Services

_PRIVATE = 90  # beyond the cards that a turn has


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


async def show_privately(
    feishu: FeishuClient, open_id: str, markdown: str, *, turn_id: str
) -> SentMessage:
    """Writes to a person in p2p, once a turn. Raises `FeishuError`, also when they do not take
    messages of ours, and `Unreachable`."""
    return await feishu.send(
        open_id,
        "open_id",
        msg_type="interactive",
        content=cards.card_content(cards.answer_card(markdown)),
        uuid=cards.reply_uuid(turn_id, _PRIVATE),
    )
