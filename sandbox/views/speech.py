"""REST view of speech recognition (open.feishu.cn, speech_to_text-v1)."""

import base64
import binascii
import re
from typing import Any

from sandbox.errors import ApiError
from sandbox.http import json_body
from sandbox.world.voice import MOST_SECONDS, RATE, heard

_FILE_ID = re.compile(r"[A-Za-z0-9_]{16}\Z")
_SAMPLE_BYTES = 2


def recognise_speech() -> dict[str, Any]:
    """POST /speech_to_text/v1/speech/file_recognize: 60 seconds of 16-bit samples at most."""
    body = json_body()
    config, speech = _part(body, "config"), _part(body, "speech")
    if (config.get("format"), config.get("engine_type")) != ("pcm", "16k_auto"):
        raise ApiError(1040101)
    if not _FILE_ID.match(str(config.get("file_id", ""))):
        raise ApiError(1040101)
    try:
        pcm = base64.b64decode(str(speech.get("speech", "")), validate=True)
    except binascii.Error:
        raise ApiError(1040101) from None
    if not pcm or len(pcm) % _SAMPLE_BYTES or len(pcm) > MOST_SECONDS * RATE * _SAMPLE_BYTES:
        raise ApiError(1040101)
    return {"recognition_text": heard(pcm)}


def _part(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name)
    return value if isinstance(value, dict) else {}
