"""An answer that Feishu does not take in a group: who asked is shown it in p2p, once.

They are shown it only where they may still read the group. It is a turn of its own whose parent is
the question's, so it goes with that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import structlog

from bot.answering.question import Turn, language
from bot.features.private_answers import texts
from bot.features.private_answers.ephemeral_answer import answer_alone, as_private
from bot.feishu.errors import FeishuFailure
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Aside
from bot.services import Services
from memory.errors import StoreError
from memory.models import OpenTurn, StoredCard
from memory.origins import Origin
from memory.scope import private_context
from memory.tables.private import PrivateStore

log = structlog.get_logger()

_CAUSE = "undelivered"


async def show_to_asker(services: Services, turn: Turn, reply: Sequence[StoredCard]) -> str:
    """What came of it, for the log. Never raises: the answer stays in the queue as given up."""
    unsent = tuple(card.content for card in reply if card.status != "sent" and not card.file)
    if not turn.in_group or turn.unasked or not unsent:
        return "nobody"
    try:
        if not await _may_read(services, turn):
            return "not_readable"
        outcome = await answer_alone(
            services,
            await as_private(services, turn.request, Origin("private_answer", turn.id, _CAUSE)),
            turn.received_ms,
            Aside(turn.request.sender_open_id),
            partial(_said, of=turn.id, cards=unsent),
        )
    except (FeishuFailure, StoreError) as exc:
        log.warning("undelivered.not_shown", turn_id=turn.id, error=type(exc).__name__)
        return type(exc).__name__
    finally:
        structlog.contextvars.bind_contextvars(conversation_id=turn.context.conversation_id)
    log.info("undelivered.shown", turn_id=turn.id, outcome=outcome.outcome)
    return outcome.outcome


async def _may_read(services: Services, turn: Turn) -> bool:
    here = turn.context
    own = private_context(here.actor_id, here.tenant_key, here.actor_tenant)
    return await PrivateStore(services.rpc).may_read(own, turn.id, here.chat_id)


async def _said(
    services: Services, turn: Turn, open_turn: OpenTurn, *, of: str, cards: Sequence[str]
) -> Reply:
    """The answer below a line that says where it belongs."""
    above = texts.undelivered(turn.question, language(services, turn, open_turn))
    return Reply("", cards=(f"{above}\n\n{cards[0]}", *cards[1:]), given=(of,))
