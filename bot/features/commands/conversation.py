"""`/new`, `/quiet`, `/resume` and `/stop`: what the bot does in this conversation."""

from __future__ import annotations

from bot.answering.chat_state import conversations_of
from bot.features.commands import texts
from bot.features.feature import CommandTurn
from bot.features.help.group_access import set_up_here
from bot.outbox.buttons import Reply
from bot.queue.table import stopping
from bot.services import Services


async def start_afresh(services: Services, command_turn: CommandTurn) -> Reply:
    await services.store.start_afresh(command_turn.context)
    return Reply(texts.say("afresh", command_turn.language))


async def quieten(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", command_turn.language))
    await conversations_of(services, command_turn.turn.request).quieten(
        command_turn.context.chat_id
    )
    return Reply(texts.say("quiet", command_turn.language))


async def resume(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", command_turn.language))
    await conversations_of(services, command_turn.turn.request).resume(command_turn.context.chat_id)
    here = await set_up_here(services, command_turn.chat_type, command_turn.opened.rules)
    text_key = "resumed" if here.follows else "resumed-on-mention"
    return Reply(texts.say(text_key, command_turn.language))


async def stop(services: Services, command_turn: CommandTurn) -> Reply | None:
    """Ends the answers to the person, and those about them, that are being written in this chat."""
    context, language = command_turn.context, command_turn.language
    running = await services.store.running_turns(context, turn_id=command_turn.turn_id)
    if not running or services.run_on_queue is None:
        if command_turn.command.only_when_running:
            return None
        return Reply(texts.say("nothing-runs", language))
    for turn_id in running:
        await services.run_on_queue(stopping(turn_id))
    return Reply(texts.say("stopping", language))
