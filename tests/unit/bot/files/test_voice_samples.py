"""A voice message as the recognition takes it, also of other rates; and what is none."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile

from bot.files.reading import VoicePieces, convert_voice
from bot.files.voice_samples import PIECE_S, RATE, NoVoice, cut, samples
from sandbox.world.voice import heard, spoken
from tests.support.rows import every_row

VOICE, _ = spoken("hello zeppelin 你好")


async def test_a_voice_message_is_heard_as_it_was_said_after_the_process() -> None:
    found = await convert_voice(VOICE)

    assert isinstance(found, VoicePieces)
    (piece,) = found.pieces
    assert heard(base64.b64decode(piece)) == "hello zeppelin 你好"


@every_row(("rate", "channels"), [(48_000, 1), (48_000, 2), (24_000, 1), (8_000, 1)])
def test_whatever_the_rate_it_becomes_what_is_recognised(rate: int, channels: int) -> None:
    at = np.arange(rate) / rate
    tone = np.sin(2 * np.pi * 1000 * at) * 0.5
    made = io.BytesIO()
    soundfile.write(made, np.stack([tone] * channels, 1), rate, format="OGG", subtype="OPUS")

    voice = samples(made.getvalue(), 10)

    assert abs(len(voice) - RATE) < RATE // 20
    spectrum = np.abs(np.fft.rfft(voice[:RATE].astype(float), RATE))
    assert abs(int(spectrum.argmax()) - 1000) < 5


def test_long_ones_are_cut_where_it_is_quiet_and_nothing_is_lost() -> None:
    loud = np.full(130 * RATE, 9000, dtype=np.int16)
    quiet = [(55, 55.3), (108, 108.3)]
    for start, end in quiet:
        loud[int(start * RATE) : int(end * RATE)] = 0

    pieces = cut(loud)

    assert [len(one) for one in pieces] == [len(one) for one in np.split(loud, np.cumsum(
        [len(one) for one in pieces])[:-1])]  # fmt: skip
    assert sum(len(one) for one in pieces) == len(loud)
    assert all(len(one) <= PIECE_S * RATE for one in pieces)
    ends = np.cumsum([len(one) for one in pieces])[:-1] / RATE
    assert all(start < end < stop for end, (start, stop) in zip(ends, quiet, strict=True))


def test_more_than_so_many_seconds_are_not_read() -> None:
    with pytest.raises(NoVoice, match="long"):
        samples(VOICE, 1)


@pytest.mark.parametrize(
    "data",
    [b"", b"OggS" + bytes(400), b"OggS" + b"OpusHead" + bytes(900), b"ID3" + bytes(100), b"RIFF"],
    ids=["nothing", "no opus", "no pages", "mp3", "wav"],
)
async def test_what_is_no_voice_message_is_damaged(data: bytes) -> None:
    assert await convert_voice(data) == "damaged"


pytestmark = pytest.mark.anyio
