"""Whether the model sees is found out: by asking it, and by what its endpoint refuses later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from bot.agents.configured_models import Models
from bot.agents.llm.model import Request
from bot.agents.llm.model_traits import (
    AFTER_FAILURE_S,
    AGAIN_S,
    PICTURE,
    VisionProbe,
    is_right_vision_answer,
    vision_question,
)
from bot.answering.material import media_type
from bot.operations.doctor import model as doctor
from bot.settings import Settings
from sandbox.model.model import ModelServer

pytestmark = pytest.mark.anyio


class EndOfTest(Exception):
    """The worker ends."""


REFUSED = {"feature": "images", "status": 400,
           "body": {"error": {"message": "Model do not support image input."}}}  # fmt: skip


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


def answering(server: ModelServer, text: str) -> None:
    server.playbook.load({"rules": [{"text": text}]})


@pytest.fixture
async def made() -> AsyncIterator[Callable[[Settings], Models]]:
    """Makes models, and closes them afterwards."""
    every: list[Models] = []

    def make(settings: Settings) -> Models:
        every.append(Models(settings))
        return every[-1]

    yield make
    for one in every:
        await one.close()


Made = Callable[[Settings], Models]


def settings(server: ModelServer, **more: Any) -> Settings:
    return Settings(openai_api_key="k", openai_base_url=server.base_url, openai_model="m", **more)


async def test_the_picture_is_one_that_models_take() -> None:
    assert media_type(PICTURE) == "image/png"


@pytest.mark.parametrize("answer", ["Yellow and purple.", "左边是黄色，右边是紫色", "gold, violet"])
async def test_who_names_both_colours_sees(endpoint: ModelServer, made: Made, answer: str) -> None:
    answering(endpoint, answer)
    sight = made(settings(endpoint)).sight()

    assert sight.sees, "not asked yet: a refusal costs one more request, a picture more"
    assert await sight.find_out()
    assert sight.sees


@pytest.mark.parametrize("answer", ["I can't see images.", "Red and blue", "yellow", ""])
async def test_who_does_not_name_them_does_not_see(
    endpoint: ModelServer, made: Made, answer: str
) -> None:
    answering(endpoint, answer or "?")
    sight = made(settings(endpoint)).sight()
    await sight.find_out()

    assert not sight.sees
    assert not is_right_vision_answer(answer)


async def test_an_endpoint_that_refuses_pictures_is_remembered_also_later(
    endpoint: ModelServer, made: Made
) -> None:
    answering(endpoint, "yellow, purple")
    models = made(settings(endpoint))
    sight = models.sight()
    await sight.find_out()
    assert sight.sees

    endpoint.refusals = type(endpoint.refusals)([REFUSED])
    await models.main().respond(Request([vision_question()]))  # asked again without, by itself

    assert not sight.sees


async def test_the_setting_wins_and_nothing_is_asked(endpoint: ModelServer, made: Made) -> None:
    for wanted in (True, False):
        sight = made(settings(endpoint, openai_vision=wanted)).sight()
        await sight.keep()
        assert sight.sees is wanted
    assert not endpoint.received


async def test_without_a_model_nobody_sees(made: Made) -> None:
    sight = made(Settings()).sight()
    await sight.keep()

    assert not sight.sees


async def test_an_endpoint_that_is_away_is_asked_again(endpoint: ModelServer, made: Made) -> None:
    endpoint.playbook.load({"steps": [{"status": 401, "body": {}}, {"text": "yellow purple"}]})
    sight = made(settings(endpoint)).sight()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise EndOfTest

    with pytest.raises(EndOfTest):
        await sight.keep(sleep)

    assert slept == [AFTER_FAILURE_S, AGAIN_S]
    assert sight.sees


async def test_the_doctor_says_which_it_is(endpoint: ModelServer) -> None:
    answering(endpoint, "yellow and purple")
    seen = await asyncio.to_thread(doctor.pictures_check, settings(endpoint))
    endpoint.refusals = type(endpoint.refusals)([REFUSED])
    refused = await asyncio.to_thread(doctor.pictures_check, settings(endpoint))
    fixed = doctor.pictures_check(settings(endpoint, openai_vision=True))

    assert (seen.state, "sees pictures" in seen.sentence.en) == ("ok", True)
    assert (refused.state, "doesn't see pictures" in refused.sentence.en) == ("ok", True)
    assert "OPENAI_VISION=true" in fixed.sentence.en


def test_a_sight_of_nothing_sees_nothing() -> None:
    assert not VisionProbe().sees
