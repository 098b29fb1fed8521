"""What connecting an account brings."""

from __future__ import annotations

from bot.features.connect.command import DISCONNECT, answer_connect_command, press_disconnect
from bot.features.feature import Feature
from bot.text.slash_commands import CommandName

CONNECT = Feature(
    name="connect",
    commands={CommandName.CONNECT: answer_connect_command},
    personal=frozenset({CommandName.CONNECT}),
    presses={DISCONNECT: press_disconnect},
    settings=frozenset({"user_token_key"}),
)
