"""Knows what is particular about a model: whether it takes pictures, and how an embedding model
expects its inputs.

A worker asks it for the two colours of a picture when it starts and then once a day, in the
background. A model that was not asked yet is given pictures; one that refuses them is asked again
without, which is remembered (`bot.agents.llm.requests`).

Many models are trained with words in front of either, which their model cards name, and find less
without them."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import structlog

from bot.agents.llm.model import Declined, Message, Model, ModelFailed, Request

if TYPE_CHECKING:  # the web process, whose readiness asks for the picture, needs none of it
    from bot.agents.llm.requests import Abilities
from dataclasses import dataclass

from bot.settings import LOCAL_EMBEDDINGS, Settings

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

_TASK = "Given a question, find what people said before that answers it"
_BGE = "Represent this sentence for searching relevant passages: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章："

# By a part of a model's name, of a question and of a passage; the first that fits.
_USUAL_PREFIXES = (
    ("e5-mistral", f"Instruct: {_TASK}\nQuery: ", ""),
    ("e5-large-instruct", f"Instruct: {_TASK}\nQuery: ", ""),
    (LOCAL_EMBEDDINGS, "", ""),  # its server puts them in front itself
    ("e5-", "query: ", "passage: "),
    ("bge-m3", "", ""),
    ("-zh", _BGE_CHINESE, ""),
    ("bge-", _BGE, ""),
    ("mxbai-embed", _BGE, ""),
    ("snowflake-arctic-embed", _BGE, ""),
    ("nomic-embed", "search_query: ", "search_document: "),
    ("qwen3-embedding", f"Instruct: {_TASK}\nQuery: ", ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
)


def vision_question() -> Message:
    """The picture and what is asked about it."""
    data = base64.b64encode(PICTURE).decode("ascii")
    content: list[dict[str, Any]] = [
        {"type": "text", "text": _QUESTION},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    return {"role": "user", "content": content}


def is_right_vision_answer(answer: str) -> bool:
    """True if the answer shows that the model has seen the picture."""
    return all(colour.search(answer) for colour in _COLOURS)


class VisionProbe:
    """Knows whether one model accepts pictures. `configured` is the setting, if there is one;
    `abilities` are what its endpoint refused. Without a `model` nothing accepts pictures."""

    def __init__(
        self,
        configured_ability: bool | None = None,
        model: Model | None = None,
        abilities: Abilities | None = None,
    ) -> None:
        self._configured = configured_ability
        self._model = model
        self._abilities = abilities
        self._found: bool | None = None

    @property
    def sees(self) -> bool:
        """True if it is shown pictures now."""
        if self._configured is not None:
            return self._configured
        if self._model is None or self._refuses_images():
            return False
        return self._found is not False

    def _refuses_images(self) -> bool:
        return self._abilities is not None and "images" in self._abilities.lacking()

    async def find_out(self) -> bool:
        """Asks the model. Returns whether the answer is known now."""
        if self._configured is not None or self._model is None:
            return True
        try:
            response = await self._model.respond(
                Request([vision_question()], max_tokens=MOST_TOKENS)
            )
        except (ModelFailed, Declined) as exc:
            log.info("model.sight_unknown", error=type(exc).__name__)
            return False
        self._found = not self._refuses_images() and is_right_vision_answer(response.text)
        log.info("model.sight", sees=self._found)
        return True

    async def keep(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Finds out again and again, for as long as the worker lives."""
        while self._configured is None and self._model is not None:
            ability = await self.find_out()
            await sleep(AGAIN_S if ability else AFTER_FAILURE_S)


@dataclass(frozen=True, slots=True)
class EmbeddingInputs:
    """How one model is given questions and passages: by which name, with which words before."""

    question_model: str
    passage_model: str
    question_prefix: str = ""
    passage_prefix: str = ""

    def question(self, text: str) -> str:
        return self.question_prefix + text

    def passage(self, text: str) -> str:
        return self.passage_prefix + text


def inputs_of(settings: Settings) -> EmbeddingInputs:
    """Those of the model of the settings."""
    model = settings.embedding_model
    question, passage = _usual_prefixes(model)
    is_local = model.lower() == LOCAL_EMBEDDINGS
    return EmbeddingInputs(
        f"{model}-query" if is_local else model,
        f"{model}-passage" if is_local else model,
        question,
        passage,
    )


def _usual_prefixes(model: str) -> tuple[str, str]:
    name = model.lower()
    prefixes = ((question, passage) for part, question, passage in _USUAL_PREFIXES if part in name)
    return next(prefixes, ("", ""))
