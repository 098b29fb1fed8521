"""What is asked of one person alone: a message to them in p2p, where their answer is read by nobody
else. What they are only shown stands beside the group (`bot.private.alone`).
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
