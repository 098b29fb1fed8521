"""Encodings of Chinese, Japanese and Korean text that the PDF library lacks, and fonts of which
nobody can tell the characters. Source: ISO 32000-2, 9.7.5.2."""

from __future__ import annotations

from typing import Any

_CODECS = {
    "GBKp-EUC": "gbk",
    "B5pc": "cp950",
    "HKscs-B5": "big5hkscs",
    **dict.fromkeys(("83pv", "90msp", "90pv", "Add", "Ext"), "cp932"),
    "EUC": "euc_jp",
    **dict.fromkeys(("KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW", "KSCpc-EUC"), "cp949"),
    **{
        f"{characters}-{form}": codec
        for characters in ("UniGB", "UniCNS", "UniJIS", "UniJIS2004", "UniKS")
        for form, codec in (("UTF8", "utf-8"), ("UTF16", "utf-16-be"), ("UTF32", "utf-32-be"))
    },
}
_IDENTITY = ("/Identity-H", "/Identity-V")


def teach_encodings() -> None:
    """Has the library read them; without it takes all of them for UTF-16."""
    from pypdf import _cmap

    for name, codec in _CODECS.items():
        whole = f"{name}-RKSJ" if codec == "cp932" else name
        for direction in "HV":
            _cmap._predefined_cmap.setdefault(f"/{whole}-{direction}", codec)


def has_unknown_characters(page: Any) -> bool:
    """True if a font of the page says neither its characters nor a known encoding: its numbers are
    those of drawings."""
    fonts = _object(_object(page.get("/Resources")).get("/Font"))
    return any(_is_unknown(_object(font)) for font in map(fonts.get, fonts))


def _is_unknown(font: dict[str, Any]) -> bool:
    from pypdf import _cmap

    if "/ToUnicode" in font:
        return False
    if font.get("/Subtype") != "/Type0":
        return font.get("/Subtype") == "/Type3"
    encoding = font.get("/Encoding")
    is_known = isinstance(encoding, str) and (
        encoding in _cmap._predefined_cmap or "-UCS2-" in encoding
    )
    return encoding in _IDENTITY or not is_known


def _object(value: Any) -> dict[str, Any]:
    found = value.get_object() if hasattr(value, "get_object") else value
    return found if isinstance(found, dict) else {}
