"""A second model for when the first one fails or does not begin in time."""

from __future__ import annotations

import structlog

from bot.agents.llm.model import (
    Model,
    ModelFailed,
    OnText,
    Request,
    Response,
    ToolsRefused,
    next_step,
)

log = structlog.get_logger()


class Fallback:
    """Asks `second` when `first` has failed before it said anything."""

    def __init__(self, first: Model, second: Model) -> None:
        self._first, self._second = first, second

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed`, `ToolsRefused` and `Declined`: who declines is not gone around."""
        try:
            return await self._first.respond(request, on_text)
        except ModelFailed as exc:
            if isinstance(exc, ToolsRefused) and exc.sure:
                raise
            failure = exc
            mended_by = next_step(exc.reason)
            say = log.error if mended_by else log.warning
            say("model.fallback", reason=exc.reason, next_step=mended_by)
        try:
            return await self._second.respond(request, on_text)
        except ModelFailed:
            if isinstance(failure, ToolsRefused):  # without tools the first may still answer
                raise failure from None
            raise
