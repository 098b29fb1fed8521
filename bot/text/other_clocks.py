"""Finds times by another clock or calendar than the bot's: “3 pm London time”, 农历八月十五. Pure.

Such a time is asked about, for taken as the bot's own it would be hours or weeks off."""

from __future__ import annotations

import functools
import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

_CODES = {
    **dict.fromkeys(("est", "edt", "et", "eastern"), "America/New_York"),
    **dict.fromkeys(("cdt", "ct", "central"), "America/Chicago"),
    **dict.fromkeys(("mst", "mdt", "mt", "mountain"), "America/Denver"),
    **dict.fromkeys(("pst", "pdt", "pt", "pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("utc", "gmt", "zulu"), "UTC"),
    **dict.fromkeys(("cet", "cest"), "Europe/Paris"),
    **dict.fromkeys(("eet", "eest"), "Europe/Helsinki"),
    **dict.fromkeys(("aest", "aedt"), "Australia/Sydney"),
    "bst": "Europe/London", "msk": "Europe/Moscow", "jst": "Asia/Tokyo", "kst": "Asia/Seoul",
    "sgt": "Asia/Singapore", "hkt": "Asia/Hong_Kong", "cst": "", "ist": "",  # of several zones
}  # fmt: skip
_PLACES = {
    **dict.fromkeys(("beijing", "china", "shenzhen", "北京", "上海", "中国"), "Asia/Shanghai"),
    **dict.fromkeys(("伦敦", "英国"), "Europe/London"),
    **dict.fromkeys(("巴黎", "法国", "欧洲", "柏林", "德国"), "Europe/Paris"),
    **dict.fromkeys(("纽约", "美东", "美国东部", "多伦多"), "America/New_York"),
    **dict.fromkeys(("美西", "美国西部", "太平洋", "洛杉矶", "旧金山", "西雅图"),
                    "America/Los_Angeles"),
    **dict.fromkeys(("东京", "日本"), "Asia/Tokyo"),
    **dict.fromkeys(("首尔", "韩国"), "Asia/Seoul"),
    **dict.fromkeys(("格林尼治", "格林威治", "世界标准", "协调世界"), "UTC"),
    "新加坡": "Asia/Singapore", "香港": "Asia/Hong_Kong", "台北": "Asia/Taipei",
    "莫斯科": "Europe/Moscow", "迪拜": "Asia/Dubai", "印度": "Asia/Kolkata",
    "悉尼": "Australia/Sydney", "美国": "", "澳洲": "",
}  # fmt: skip
_CODE = rf"(?P<code>{'|'.join(one for one in _CODES if 2 < len(one) < 5)}|(?-i:[ECMP]T))"
_OFFSET = r"(?P<offset> ?[+\-−]\d{1,2}(?::?\d\d)?)?(?![\w+\-−])[)）]?"
_AFTER_CLOCK = r"(?:(?<=\d)|(?<=[ap]m)|(?<=[ap]\.m\.)|(?<=o['’]clock)|(?<=noon)|(?<=midnight))"
_PLACE = r"(?P<place>(?-i:[A-Z][a-z]+(?: [A-Z][a-z]+)?)|eastern|central|mountain|pacific)"
_PLACES_ZH = "|".join(sorted(filter(str.isalpha, _PLACES), key=len, reverse=True))
_ZONE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_AFTER_CLOCK}[ ,，]{{0,2}}[(（]?{_CODE}{_OFFSET}",
        rf"\b{_CODE}{_OFFSET}(?: ?时间| time)?,?(?: at)? ?(?=\d)",
        rf"{_AFTER_CLOCK},? (?:in )?{_PLACE}(?: standard| local)? time\b",
        rf"\b{_PLACE}(?: standard| local)? time,? (?:at )?(?=\d)",
        rf"(?P<place>{_PLACES_ZH})(?:当地|标准)?时间",
    )
)
_NUMERAL = "[初一二三四五六七八九十廿\\d]"
_LUNAR = re.compile(
    rf"(?:农历|阴历|旧历|农曆|陰曆)的?\s{{0,3}}(?:{_NUMERAL}|[正腊臘冬闰])|(?:腊|臘|正|冬)月(?:{_NUMERAL})"
    r"|闰.{1,2}月|大年(?:初|三十|夜)|\blunar (?:calendar|month|date|new year|\d)",
    re.IGNORECASE,
)
_LUNAR_DAY = re.compile(
    rf"(?:农历|阴历|旧历|农曆|陰曆)?的?\s{{0,3}}(?:[正腊臘冬]|闰?{_NUMERAL}{{1,2}})月{_NUMERAL}{{1,3}}[日号]?"
    r"|大年(?:初[一二三四五六七八九十]|三十|夜)"
)


def names_other_zone(text: str, now: datetime) -> bool:
    """True if a time in `text` is by a clock that shows another time than that of `now`, or may."""
    return now.tzinfo is not None and any(
        _is_other(match, now) for one in _ZONE for match in one.finditer(text)
    )


def without_zones(text: str) -> str:
    """The text without names of zones beside times, once they are known to be the bot's own."""
    for one in _ZONE:
        text = one.sub(lambda match: match[0] if _is_none(match) else " ", text)
    return text


def without_lunar_days(text: str) -> str:
    """The text without its days, where it names one of the lunar calendar."""
    return _LUNAR_DAY.sub(" ", text) if names_lunar_day(text) else text


def names_lunar_day(text: str) -> bool:
    """True if `text` names a day of the lunar calendar as one."""
    return bool(_LUNAR.search(text))


def _is_other(match: re.Match[str], now: datetime) -> bool:
    if _is_none(match):
        return False
    offset, zone = _offset(match), _zone(match)
    if offset is None:
        offset = now.astimezone(ZoneInfo(zone)).utcoffset() if zone else None
    return offset != now.utcoffset()


def _is_none(match: re.Match[str]) -> bool:
    """True for “3 Quality time”."""
    place = (match.groupdict().get("place") or "").lower()
    return bool(place) and not (place in _CODES or place in _PLACES or place in _cities())


def _zone(match: re.Match[str]) -> str:
    """The zone that is named; "" where the name is of several."""
    words = match.groupdict()
    name = (words.get("code") or words.get("place") or "").lower()
    return _CODES.get(name) or _PLACES.get(name) or _cities().get(name, "")


def _offset(match: re.Match[str]) -> timedelta | None:
    """The offset of “UTC+8”, “GMT-03:30”."""
    text = re.sub("[^-+0-9]", "", (match.groupdict().get("offset") or "").replace("−", "-"))
    if not text:
        return None
    digits = text[1:].zfill(2).ljust(4, "0") if len(text) < 4 else text[1:].zfill(4)
    span = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -span if text[0] == "-" else span


@functools.cache
def _cities() -> dict[str, str]:
    """The zones of the time zone database by the names of their cities."""
    return {
        one.rpartition("/")[2].replace("_", " ").lower(): one
        for one in available_timezones()
        if "/" in one and not one.startswith("Etc/")
    }
