"""A voice message as what Feishu's recognition takes, in a process of its own that reads hostile
files: nothing else is in it.

    python -m bot.files.voice_samples MOST_SECONDS SECONDS MEGABYTES < voice > answer

Voice messages are Opus in Ogg; the recognition takes 60 seconds of 16-bit samples, 16,000 a second,
one channel. The answer is JSON: `{"pieces": [base64]}`, cut where it is quiet, or `{"refused":
reason}`. Memory and processor time are limits of the process; the libraries are loaded after they
are set.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from bot.files.extracting import limit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.int16]

RATE = 16_000
PIECE_S = 58
_LOOK_BACK_S = 8  # from the end of a piece, for a quiet place
_QUIET = RATE // 10
_OGG, _OPUS = b"OggS", b"OpusHead"


class NoVoice(Exception):
    """The file gives no voice; the argument is the reason."""


def main(arguments: list[str]) -> int:
    """Reads the file from standard input; the answer is printed, also when it is a refusal."""
    most_s, seconds, megabytes = map(int, arguments[:3])
    data = sys.stdin.buffer.read()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # each thread takes memory, and none is needed
    limit(seconds, megabytes)
    answer: dict[str, Any]
    try:
        pieces = cut(samples(data, most_s))
        answer = {"pieces": [base64.b64encode(one.tobytes()).decode() for one in pieces]}
    except NoVoice as exc:
        answer = {"refused": str(exc)}
    except Exception:  # noqa: BLE001  whatever a library makes of a hostile file
        answer = {"refused": "damaged"}
    sys.stdout.buffer.write(json.dumps(answer).encode())
    return 0


def samples(data: bytes, most_s: int) -> Samples:
    """All of the voice, as the recognition takes it. Raises `NoVoice`, or what the library does."""
    import numpy as np
    import soundfile

    if not data.startswith(_OGG) or _OPUS not in data[:512]:
        raise NoVoice("damaged")
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        if file.frames > most_s * file.samplerate:
            raise NoVoice("long")
        frames = file.read(most_s * file.samplerate, dtype="int16", always_2d=True)
        rate = file.samplerate
    mono = frames[:, 0] if frames.shape[1] == 1 else frames.mean(axis=1).astype(np.int16)
    return mono if rate == RATE else _at_our_rate(mono, rate)


def _at_our_rate(mono: Samples, rate: int) -> Samples:
    """The same voice, `RATE` samples a second; above that smoothed first, so that nothing folds."""
    import numpy as np

    wide = max(1, rate // RATE)
    smooth = np.convolve(mono, np.ones(wide) / wide, mode="same") if wide > 1 else mono
    at = np.arange(len(mono) * RATE // rate) * (rate / RATE)
    resampled: Samples = np.interp(at, np.arange(len(mono)), smooth).astype(np.int16)
    return resampled


def cut(voice: Samples) -> list[Samples]:
    """Pieces of at most `PIECE_S` seconds, cut in the middle of the quietest tenth of a second
    near their end."""
    import numpy as np

    pieces, start = [], 0
    while len(voice) - start > PIECE_S * RATE:
        end = start + PIECE_S * RATE
        near = np.abs(voice[end - _LOOK_BACK_S * RATE : end].astype(np.int32))
        loudness = near[: len(near) // _QUIET * _QUIET].reshape(-1, _QUIET).sum(axis=1)
        end = end - _LOOK_BACK_S * RATE + int(loudness.argmin()) * _QUIET + _QUIET // 2
        pieces.append(voice[start:end])
        start = end
    return [*pieces, voice[start:]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
