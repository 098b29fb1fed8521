"""Voices of the simulated tenant: words as tones in a real voice message, and heard again in PCM.

Each byte of a word is two tones of 40 ms, each word is followed by a silence; so any piece that is
cut in a silence is heard by itself, and samples of another rate or form are heard as nothing. Voice
messages are Opus in Ogg, 16,000 samples a second, one channel, as Feishu's own are.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Wave = NDArray[np.float64]

RATE = 16_000
MOST_SECONDS = 60  # of what is recognised at once
_TONE = RATE // 25
_SILENCE = RATE // 4
_LOWEST, _STEP = 600, 150  # Hz
_LOUD = 0.05
_QUIET_FOR = _TONE // 2


def spoken(text: str, seconds: float = 0.0) -> tuple[bytes, int]:
    """A voice message that says `text` within at least `seconds`, and its length in ms."""
    import numpy as np
    import soundfile

    words = [_word(one) for one in text.split()]
    said_s = sum(len(one) + _SILENCE for one in words) / RATE
    left = max(0.0, seconds - said_s)
    pause = np.zeros(_SILENCE + int(left * RATE / max(1, len(words))))
    parts = [part for one in words for part in (one, pause)] or [np.zeros(int(seconds * RATE) or 1)]
    wave = np.concatenate([np.zeros(_SILENCE), *parts])
    made = io.BytesIO()
    soundfile.write(made, wave, RATE, format="OGG", subtype="OPUS")
    return made.getvalue(), len(wave) * 1000 // RATE


def heard(pcm: bytes) -> str:
    """The words in 16-bit samples of one channel, 16,000 a second."""
    import numpy as np

    wave = np.frombuffer(pcm, "<i2").astype(np.float64) / 32768
    return " ".join(filter(None, (_read(wave[start:end]) for start, end in _loud_parts(wave))))


def _word(word: str) -> Wave:
    import numpy as np

    at = np.arange(_TONE) / RATE
    nibbles = [half for byte in word.encode() for half in (byte >> 4, byte & 15)]
    tones = [np.sin(2 * np.pi * (_LOWEST + _STEP * one) * at) * 0.6 for one in nibbles]
    return np.concatenate(tones)


def _loud_parts(wave: Wave) -> list[tuple[int, int]]:
    """Where something is said: the ends of each part between silences."""
    import numpy as np

    loud = np.flatnonzero(np.abs(wave) > _LOUD)
    if not len(loud):
        return []
    gaps = np.flatnonzero(np.diff(loud) > _QUIET_FOR)
    starts = [int(loud[0]), *(int(loud[one + 1]) for one in gaps)]
    ends = [*(int(loud[one]) for one in gaps), int(loud[-1])]
    return list(zip(starts, ends, strict=True))


def _read(wave: Wave) -> str:
    """One word; "" where it is none of ours."""
    import numpy as np

    count = round(len(wave) / _TONE)
    nibbles = []
    for number in range(count):
        tone = wave[number * _TONE + _TONE // 4 : (number + 1) * _TONE - _TONE // 4]
        if len(tone) < _TONE // 4:
            return ""
        spectrum = np.abs(np.fft.rfft(tone * np.hanning(len(tone)), RATE))
        nibble = (int(spectrum.argmax()) - _LOWEST) / _STEP
        if not -0.4 < nibble < 15.4:
            return ""
        nibbles.append(round(nibble))
    pairs = zip(nibbles[::2], nibbles[1::2], strict=False)
    try:
        return bytes(high << 4 | low for high, low in pairs).decode()
    except UnicodeDecodeError:
        return ""
