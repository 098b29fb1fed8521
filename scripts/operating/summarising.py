"""The summary of one conversation in `scripts/memory`: folded now, and shown."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from memory.scope import AgentMemoryContext
from memory.tables.summaries import Fold, Summaries
from scripts.operating.console import Screen, print_json, progress
from scripts.operating.desk import OperatorDesk


class NothingToFold(Exception):
    """The conversation has no messages but those that are given to the model as they are."""


async def summarise(
    desk: OperatorDesk, given: argparse.Namespace, context: AgentMemoryContext
) -> int:
    """Folds what the window no longer shows, and prints the summary. Raises `NothingToFold`."""
    from bot.agents.configured_models import Models  # all bring the model's client with them
    from bot.agents.summaries.summariser import build_summariser
    from bot.answering.summaries import fold, window

    async def names(open_ids: Sequence[str]) -> Mapping[str, str]:
        known = await desk.people.named(context.tenant_key, open_ids)
        return {one.open_id: one.name for one in known if one.name}

    models = Models(desk.settings)
    summaries, shown = Summaries(desk.rpc), window(desk.settings.history_messages)
    writer = build_summariser(desk.settings, models)
    fold_once = partial(
        fold, summaries, writer, context, window=shown, names=names, zone=desk.settings.zone, most=1
    )
    folded = 0
    try:
        with progress("versions") as step:
            while now := await fold_once():
                folded += now
                step()
    finally:
        await models.close()
    stored = await summaries.open_fold(context, window=shown)
    if not stored.content:
        nothing = f"{context.user_id} has no messages in {context.conversation_id}"
        raise NothingToFold(
            f"nothing to fold: {desk.named(nothing)} before the last {shown}, which the model is "
            "given as they are"
        )
    _show(stored, context, folded, as_json=given.json)
    return 0


def _show(stored: Fold, context: AgentMemoryContext, folded: int, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "conversation_id": context.conversation_id,
                "user_id": context.user_id,
                "version": stored.version,
                "messages": stored.folded,
                "folded_now": folded,
                "content": stored.content,
            }
        )
        return
    title = f"Version {stored.version}: {stored.folded} messages, {folded} of them folded now"
    Screen().table(title, ("summary",), [[line] for line in stored.content.splitlines()])
