"""What the environment, `.env` and the machine say, and how a text there becomes a value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

FILE = Path(".env")
_LOCAL_TIME, _NAMED = Path("/etc/localtime"), Path("/etc/timezone")
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "f", "n"), False),
}
_CALLED = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most"}


def given() -> dict[str, str]:
    """Values by names in lower case; what is empty is not given, and the environment wins.

    Raises `OSError` and `UnicodeDecodeError` when there is a `.env` that cannot be read.
    """
    return {**_named(_of_file()), **_named(os.environ)}


def value_of(value: object, kind: Any, **limits: Any) -> Any:
    """What is said, a text or a value, as the type `kind` within its limits (`ge`, `gt`, `le`).

    Raises ValueError with what it must be.
    """
    if isinstance(value, str) and kind is not str:
        value = value.strip()
        if bool in (kind, *get_args(kind)):
            value = _FLAGS.get(value.lower(), value)
    annotated_kind = Annotated[kind, msgspec.Meta(**limits)] if limits else kind
    try:
        return msgspec.convert(value, annotated_kind, strict=False, dec_hook=_made)
    except (msgspec.ValidationError, TypeError):
        raise ValueError(f"it must be {_described(kind, limits)}") from None


def _named(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name.lower(): value for name, value in values.items() if value}


def _of_file() -> dict[str, str | None]:
    if not FILE.is_file():
        return {}
    from dotenv import dotenv_values  # for who has such a file

    return dotenv_values(FILE, encoding="utf-8")


def _made(kind: type, value: Any) -> Any:
    """A type that msgspec does not know: a path."""
    return kind(value)


def _described(kind: Any, limits: Mapping[str, float]) -> str:
    """In words, such as “a whole number, at least 1, at most 32”."""
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    plain = next((one for one in get_args(kind) if one is not NoneType), kind)
    bounds = [f"{word} {limits[name]:g}" for name, word in _BOUNDS.items() if name in limits]
    return ", ".join((_CALLED.get(plain, "a text"), *bounds))


def machine_zone(local_time: Path = _LOCAL_TIME, zone_file: Path = _NAMED) -> str:
    """The IANA name of this machine's time zone, or "" where the machine does not tell."""
    return next(filter(_is_zone, _candidates(local_time, zone_file)), "").removeprefix("Etc/")


def _candidates(local_time: Path, zone_file: Path) -> Iterator[str]:
    yield os.environ.get("TZ", "").removeprefix(":")
    yield str(local_time.resolve()).rpartition("/zoneinfo/")[2]
    if zone_file.is_file():
        yield zone_file.read_text(encoding="utf-8", errors="replace").strip()


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
