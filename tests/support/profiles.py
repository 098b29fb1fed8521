"""Settings of the bot that several acceptance modules share, so that they share its processes."""

from __future__ import annotations

# The offline answers, the clock of Berlin.
OFFLINE = {"OPENAI_API_KEY": "", "TIMEZONE": "Europe/Berlin"}

# People can connect their accounts. A key of the tests alone.
CONNECTED = {
    "USER_TOKEN_KEY": "dGVzdHMtb25seS1rZXktb2YtMzItYnl0ZXMtMDAwMDA=",
    "FEISHU_CALLS_PER_SECOND": "200",
    "LOG_LEVEL": "DEBUG",
}

STREAMING = {"STREAM_REPLIES": "true", "FILE_MAX_MB": "1"}

# Answers stand in the chat itself, where they can be quoted: in a thread every message hangs under
# the root.
IN_CHAT = {"REPLY_IN_THREAD": "false", "OPENAI_VISION": "true"}

SHARED = ({}, OFFLINE, CONNECTED, STREAMING, IN_CHAT)
