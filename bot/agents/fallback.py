"""A second model for when the first one fails or does not begin in time."""

from __future__ import annotations

import asyncio

import structlog

from bot.agents.model import NEXT_STEPS, Model, ModelFailed, OnText, Request, Response

log = structlog.get_logger()


class Fallback:
    """Asks `second` when `first` has failed, or has said nothing within `within_s`."""

    def __init__(self, first: Model, second: Model, *, within_s: float) -> None:
        self._first, self._second = first, second
        self._within_s = within_s

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed` and `Declined`: who declines is not gone around."""
        try:
            async with asyncio.timeout(self._within_s) as limit:
                return await self._first.respond(request, on_text and _begun(on_text, limit))
        except (ModelFailed, TimeoutError) as exc:
            reason = exc.reason if isinstance(exc, ModelFailed) else "timeout"
            mended_by = NEXT_STEPS.get(reason)
            say = log.error if mended_by else log.warning
            say("model.fallback", reason=reason, next_step=mended_by)
        return await self._second.respond(request, on_text)


def _begun(on_text: OnText, limit: asyncio.Timeout) -> OnText:
    """A model that writes may take all of the turn's time."""

    async def report(text: str) -> None:
        if limit.when() is not None:
            limit.reschedule(None)
        await on_text(text)

    return report
