"""A cell is read as a person sees it: its number format decides."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from typing import Any

from bot.files.extracting import extract
from bot.files.number_formats import shown
from tests.support.rows import every_row

MIDNIGHT = dt.datetime.fromisoformat("2026-03-05")


@every_row(
    ("value", "number_format", "text"),
    [
        (0.25, "0%", "25%"),
        (0.125, "0.00%", "12.50%"),
        (-0.07, "0%;[Red]-0%", "-7%"),
        (1234.5, '#,##0.00 "€"', "1,234.50 €"),
        (4200, '"$"#,##0.00', "$4,200.00"),
        (99, "[$¥-804]#,##0.00", "¥99.00"),
        (1500, "_-* #,##0.00 [$€-407]_-;-* #,##0.00 [$€-407]_-", "1,500.00 €"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "(1,234.50)"),
        (0, '_-* #,##0_-;-* #,##0_-;_-* "-"_-', "-"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (42, "00000", "00042"),
        (12, "0\\ \\d", "12 d"),
        (7, 'General" pcs"', "7 pcs"),
        (1, '"Yes";"Yes";"No"', "Yes"),
        (-0.0001, "0.00", "0.00"),
        (2.5, "0", "3"),
        (5, ";;;", "5"),
        (95, '[>=90]"A "0;0', "95"),
        (0.5, "# ?/?", "0.5"),
        (5_551_234, "000\\-0000", "5551234"),
        (0.1 + 0.2, "General", "0.3"),
        (12_345_678_901_234, None, "12345678901234"),
        (1e300, "0.00", "1E+300"),
        (True, None, "TRUE"),
        ("#DIV/0!", "0%", "#DIV/0!"),
        ("Main St 1_x000D_\n20100 Turku", "@", "Main St 1 20100 Turku"),
        (MIDNIGHT, 'yyyy"年"m"月"d"日"', "2026-03-05"),
        (MIDNIGHT, "yyyy-mm-dd hh:mm", "2026-03-05 00:00"),
        (MIDNIGHT.replace(hour=9, minute=8, second=7), "m/d/yy h:mm:ss", "2026-03-05 09:08:07"),
        (MIDNIGHT, "[$-F800]dddd\\,\\ mmmm\\ dd", "2026-03-05"),
        (dt.time(15, 5), "h:mm AM/PM", "15:05"),
        (dt.timedelta(hours=27, minutes=30), "[h]:mm", "27:30"),
    ],
)
def test_a_value_is_written_as_its_format_shows_it(
    value: Any, number_format: str | None, text: str
) -> None:
    assert shown(value, number_format) == text


def workbook(number: int) -> bytes:
    """A cell with a format that the file names by its number only."""
    from openpyxl import Workbook

    book, saved, out = Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append(["due", 46086])
    book.active["B1"].number_format = "0.000"
    book.active["A2"], book.active["B2"] = "share", "=B1/2"
    book.save(saved)
    with zipfile.ZipFile(saved) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            part = before.read(name).replace(b'numFmtId="164"', b'numFmtId="%d"' % number)
            after.writestr(name, re.sub(b"<numFmts.*</numFmts>", b"", part))
    return out.getvalue()


@every_row(("number", "text"), [(14, "2026-03-05"), (31, "2026-03-05"), (9, "4608600%")])
def test_formats_are_known_by_number_beside_formulas_too(number: int, text: str) -> None:
    assert f"due | {text}\nshare | =B1/2" in extract("xlsx", workbook(number), 1000, 30)["text"]
