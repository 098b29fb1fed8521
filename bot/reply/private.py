"""What only one person may see: a message to them alone.

Feishu's ephemeral cards, which are shown in the group itself, belong here, before the p2p message;
that remains for topic groups and for clients that are not online.
"""

from __future__ import annotations

from bot.feishu import cards
from bot.feishu.client import FeishuClient
from bot.feishu.models import SentMessage

_PRIVATE = 90  # beyond the cards that a turn has


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
