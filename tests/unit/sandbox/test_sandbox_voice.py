"""The stand-in's voice messages are real ones, and its recognition takes what Feishu's takes."""

import base64
import json

import numpy as np
import pytest

from bot.files.voice_samples import samples
from tests.support.rows import every_row


def recognise(tenant, pcm, **config):
    body = {
        "speech": {"speech": base64.b64encode(pcm).decode()},
        "config": {"file_id": "a" * 16, "format": "pcm", "engine_type": "16k_auto", **config},
    }
    return tenant.call("POST", "/speech_to_text/v1/speech/file_recognize", body)


@pytest.fixture
def voice(tenant):
    """The samples of a voice message, loaded as the app loads it."""
    message_id = tenant.say("ship it on Friday", message_type="audio")
    (event,) = tenant.pushed("im.message.receive_v1") or [None]
    content = json.loads(event["event"]["message"]["content"])
    assert content["duration"] > 1000
    path = f"/im/v1/messages/{message_id}/resources/{content['file_key']}"
    return samples(tenant.call("GET", path, type="file").data, 60).tobytes()


def test_what_was_said_is_recognised(tenant, voice):
    answer = recognise(tenant, voice)

    assert answer.json["data"] == {"recognition_text": "ship it on Friday"}


@every_row(
    "config",
    [{"format": "opus"}, {"engine_type": "8k"}, {"file_id": "short"}, {"file_id": "ü" * 16}],
)
def test_another_form_is_refused(tenant, voice, config):
    answer = recognise(tenant, voice, **config)

    assert (answer.status_code, answer.json["code"]) == (400, 1040101)


@every_row("pcm", [b"", b"odd", bytes(60 * 32_000 + 2)])
def test_nothing_half_samples_and_more_than_a_minute_are_refused(tenant, pcm):
    assert recognise(tenant, pcm).json["code"] == 1040101


def test_samples_of_another_rate_are_heard_as_nothing(tenant, voice):
    half = np.frombuffer(voice, "<i2")[::2].tobytes()

    assert recognise(tenant, half).json["data"] == {"recognition_text": ""}


def test_without_the_scope_it_is_refused(tenant):
    tenant.control("POST", "switches", {"speech_to_text:speech": False})

    assert recognise(tenant, bytes(320)).json["code"] == 99991672
