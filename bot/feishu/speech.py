"""Feishu's speech recognition. Source: Feishu, "Speech file recognition" (speech_to_text-v1): 60
seconds of PCM at most, 20 calls a second for all apps of the tenant, not in the free plan."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from bot.feishu.caller import Caller
from bot.feishu.fields import as_dict, as_text
from bot.feishu.pacing import SharedPace, per_second_pacer
from bot.feishu.transport import ApiRequest

_PATH = "/open-apis/speech_to_text/v1/speech/file_recognize"
_A_SECOND = 20


class SpeechCalls:
    """The calls of one app."""

    def __init__(
        self,
        caller: Caller,
        pace: SharedPace,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._caller = caller
        self._pacer = per_second_pacer("speech", _A_SECOND, pace, clock=clock, sleep=sleep)

    async def recognise(self, pcm: str) -> str:
        """The words of less than a minute of voice: 16-bit samples, 16,000 a second, one channel,
        in base64. "": there are none. Raises FeishuFailure."""
        config = {"file_id": secrets.token_hex(8), "format": "pcm", "engine_type": "16k_auto"}
        body = {"speech": {"speech": pcm}, "config": config}
        request = ApiRequest("POST", _PATH, body=body, api="recognise speech")
        answer = await self._caller.call(request, self._pacer, "speech")
        return as_text(as_dict(answer.get("data")).get("recognition_text")).strip()
