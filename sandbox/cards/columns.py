"""What Feishu asks of columns in a card. Pure.

Source: open.feishu.cn, card-json-v2-components, column set: how columns give way on a narrow
screen, how wide one is, and what none of them holds.
"""

import re
from typing import Any

from sandbox.cards.forms import tagged

_FLEX_MODES = frozenset({"none", "stretch", "flow", "bisect", "trisect"})
_DIRECTIONS = frozenset({"horizontal", "vertical"})
_ALIGNS = frozenset({"top", "center", "bottom"})
_PIXELS = re.compile(r"([0-9]{1,3})px")
_WIDTHS = range(16, 601)
_WEIGHTS = range(1, 6)


def fault(column_set: dict[str, Any]) -> str:
    """Why the columns are refused, or ""."""
    if column_set.get("flex_mode", "none") not in _FLEX_MODES:
        return f"flex_mode {column_set['flex_mode']!r} is not known"
    return next((found for one in column_set.get("columns", []) if (found := _fault(one))), "")


def _fault(column: dict[str, Any]) -> str:
    if any(one["tag"] in ("form", "table") for one in tagged(column.get("elements"))):
        return "a column holds no form and no table"
    if column.get("direction", "vertical") not in _DIRECTIONS:
        return f"direction {column['direction']!r} is not known"
    if column.get("vertical_align", "top") not in _ALIGNS:
        return f"vertical_align {column['vertical_align']!r} is not known"
    return _width(column)


def _width(column: dict[str, Any]) -> str:
    width = column.get("width", "auto")
    pixels = _PIXELS.fullmatch(str(width))
    if width not in ("auto", "weighted") and not (pixels and int(pixels[1]) in _WIDTHS):
        return f"a column cannot be {width!r} wide"
    if "weight" in column and (width != "weighted" or column["weight"] not in _WEIGHTS):
        return "weight is 1 to 5, of a column whose width is weighted"
    return ""
