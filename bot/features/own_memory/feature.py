"""What a person's own memory brings."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.own_memory.by_words import FORGET_CHOSEN, forget_chosen
from bot.features.own_memory.commands import show_memory, show_notes
from bot.features.own_memory.forgetting import (
    FORGET_PERSON,
    FORGET_THREAD,
    ask_to_forget,
    forget,
)
from bot.features.own_memory.items import PRESSES, press_item
from bot.text.slash_commands import CommandName

OWN_MEMORY = Feature(
    name="own_memory",
    commands={
        CommandName.MEMORY: show_memory,
        CommandName.NOTES: show_notes,
        CommandName.FORGET: ask_to_forget,
    },
    personal=frozenset({CommandName.MEMORY, CommandName.NOTES, CommandName.FORGET}),
    presses={
        **dict.fromkeys(PRESSES, press_item),
        FORGET_CHOSEN: forget_chosen,
    },
    deleting_presses=dict.fromkeys((FORGET_THREAD, FORGET_PERSON), forget),
)
