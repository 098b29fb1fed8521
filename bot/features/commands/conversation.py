"""`/new`, `/quiet`, `/resume` and `/stop`: what the bot does in this conversation."""

from __future__ import annotations

from bot.answering.chat_state import conversations_of
from bot.features.commands import texts
from bot.features.feature import CommandTurn
from bot.features.help.group_access import set_up_here
from bot.outbox.buttons import Reply
from bot.queue.table import stopping
from bot.services import Services


async def start_afresh(services: Services, asked: CommandTurn) -> Reply:
    await services.store.start_afresh(asked.context)
    return Reply(texts.say("afresh", asked.language))


async def quieten(services: Services, asked: CommandTurn) -> Reply:
    if asked.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", asked.language))
    await conversations_of(services, asked.turn.request).quieten(asked.context.chat_id)
    return Reply(texts.say("quiet", asked.language))


async def resume(services: Services, asked: CommandTurn) -> Reply:
    if asked.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", asked.language))
    await conversations_of(services, asked.turn.request).resume(asked.context.chat_id)
    here = await set_up_here(services, asked.chat_type, asked.opened.rules)
    resumed = "resumed" if here.follows else "resumed-on-mention"
    return Reply(texts.say(resumed, asked.language))


async def stop(services: Services, asked: CommandTurn) -> Reply | None:
    """Ends the answers to the person, and those about them, that are being written in this chat."""
    context, language = asked.context, asked.language
    running = await services.store.running_turns(context, turn_id=asked.turn_id)
    if not running or services.run_on_queue is None:
        if asked.command.only_when_running:
            return None
        return Reply(texts.say("nothing-runs", language))
    for turn_id in running:
        await services.run_on_queue(stopping(turn_id))
    return Reply(texts.say("stopping", language))
