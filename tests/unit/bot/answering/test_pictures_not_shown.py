"""Pictures that models do not take: the reason names the format."""

from pathlib import Path

from bot.answering.material import _why_not_shown
from tests.support.rows import every_row

HEIC = (Path(__file__).parents[3] / "data" / "files" / "r21.heic").read_bytes()


@every_row(
    ("data", "says"),
    [
        (HEIC, "format HEIC"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00", "format AVIF"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "format AVIF"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1miafheic", "format HEIC"),
        (b"\x00\x00\x00\x14ftypmsf1\x00\x00\x00\x00mif1avif", "format HEIC"),
        (b"\x00\x00\x00\x14ftypmp42\x00\x00\x00\x00isom", "its format is unknown"),
        (b"II*\x00\x08\x00", "format TIFF"),
        (b"MM\x00*\x00\x08", "format TIFF"),
        (b"BM6\x00", "format BMP"),
        (b"II+\x00\x08\x00", "format TIFF"),
        (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "format JPEG XL"),
        (b"\xff\x4f\xff\x51", "format JPEG 2000"),
        (b"8BPS\x00\x01", "format PSD"),
        (b"%PDF-1.7", "format PDF"),
        (b'<?xml version="1.0"?><svg xmlns="x"/>', "format SVG"),
        (b"nothing known", "its format is unknown"),
        (b"", "it is empty"),
    ],
)
def test_the_true_reason_is_told(data: bytes, says: str) -> None:
    assert says in _why_not_shown(data)
