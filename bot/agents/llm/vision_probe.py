"""Whether the model sees pictures: as OPENAI_VISION says, else as it showed when it was asked.

It is asked what is in a picture of two colours, once when a worker starts and then once a day, in
the background: no answer waits for it. A model that was not asked yet is given pictures; one that
refuses them is asked again without, and remembered (`bot.agents.llm.model_abilities`).
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from bot.agents.llm.model import Declined, Message, Model, ModelFailed, Request
from bot.agents.llm.model_abilities import Abilities

log = structlog.get_logger()

AGAIN_S = 24 * 3600.0
AFTER_FAILURE_S = 600.0
MOST_TOKENS = 1000  # a model that thinks first needs some
# 128 x 128: the left half is yellow, the right half purple. Some endpoints refuse smaller ones.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAIAAAACACAIAAABMXPacAAAA9UlEQVR42u3RAQkAAAgDsEe3qFm0hsJgDZbpvFap1yJA"
    "gAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQI"
    "ECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAAB"
    "AgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBAgAABAgQIECBA"
    "gAABAgQIECBAgAABAi5YYnuFVmOsvygAAAAASUVORK5CYII="
)
_QUESTION = "Which two colours are in this picture, left and right? Answer with the two words."
_COLOURS = (
    re.compile(r"yellow|gold|黄", re.IGNORECASE),
    re.compile(r"purple|violet|magenta|紫", re.IGNORECASE),
)


def question() -> Message:
    """The picture and what is asked about it."""
    data = base64.b64encode(PICTURE).decode("ascii")
    content: list[dict[str, Any]] = [
        {"type": "text", "text": _QUESTION},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    return {"role": "user", "content": content}


def is_right(answer: str) -> bool:
    """Whether somebody who answers so has seen the picture."""
    return all(colour.search(answer) for colour in _COLOURS)


class VisionProbe:
    """Whether one model sees. `configured`: what the settings say, if anything. `abilities` are
    what its endpoint refused; `model` None: there is nobody to ask, and nobody sees."""

    def __init__(
        self,
        configured: bool | None = None,
        model: Model | None = None,
        abilities: Abilities | None = None,
    ) -> None:
        self._configured = configured
        self._model = model
        self._abilities = abilities or Abilities()
        self._found: bool | None = None

    @property
    def sees(self) -> bool:
        """Whether to show it pictures now."""
        if self._configured is not None:
            return self._configured
        if self._model is None or "images" in self._abilities.lacking():
            return False
        return self._found is not False

    async def find_out(self) -> bool:
        """Asks it; whether that is known now."""
        if self._configured is not None or self._model is None:
            return True
        try:
            said = await self._model.respond(Request([question()], max_tokens=MOST_TOKENS))
        except (ModelFailed, Declined) as exc:
            log.info("model.sight_unknown", error=type(exc).__name__)
            return False
        self._found = "images" not in self._abilities.lacking() and is_right(said.text)
        log.info("model.sight", sees=self._found)
        return True

    async def keep(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Finds out again and again, for as long as the worker lives."""
        while self._configured is None and self._model is not None:
            known = await self.find_out()
            await sleep(AGAIN_S if known else AFTER_FAILURE_S)
