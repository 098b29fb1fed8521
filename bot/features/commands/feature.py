"""What the commands about a conversation bring."""

from __future__ import annotations

from bot.features.commands.conversation import quieten, resume, start_afresh, stop
from bot.features.feature import Feature
from bot.text.slash_commands import CommandName

COMMANDS = Feature(
    name="commands",
    commands={
        CommandName.NEW: start_afresh,
        CommandName.QUIET: quieten,
        CommandName.RESUME: resume,
        CommandName.STOP: stop,
    },
    personal=frozenset({CommandName.NEW}),
)
