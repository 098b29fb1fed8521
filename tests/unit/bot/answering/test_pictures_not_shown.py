"""Pictures that models do not take: the reason names the format."""

from pathlib import Path

import pytest

from bot.answering.material import _why_not_shown

HEIC = (Path(__file__).parents[3] / "data" / "files" / "r21.heic").read_bytes()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (HEIC, "format HEIC"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00", "format AVIF"),
        (b"II*\x00\x08\x00", "format TIFF"),
        (b"MM\x00*\x00\x08", "format TIFF"),
        (b"BM6\x00", "format BMP"),
        (b'<?xml version="1.0"?><svg xmlns="x"/>', "format SVG"),
        (b"nothing known", "its format is unknown"),
        (b"", "it is empty"),
    ],
)
def test_the_true_reason_is_told(data: bytes, says: str) -> None:
    assert says in _why_not_shown(data)
