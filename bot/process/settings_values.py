"""Reads the values of settings from the environment, and checks their form.

No sentence holds a value: a URL may carry a password, and a key may stand in the wrong
variable."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from io import StringIO
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from bot.text.languages import InvalidValue, Sentence
from memory.sealing import Sealer, TokenKeyInvalid

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOST = re.compile(r"[0-9A-Za-z._:-]+")
_CALLS = ("/chat/completions", "/embeddings", "/models")
_BETWEEN_NAMES = re.compile("[,;，；、]")
_HEADER_VALUE = re.compile(r"[!-~]+")
_PRIVATE: tuple[Network, ...] = tuple(
    ipaddress.ip_network(one)
    for one in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10"),  # the first: of VPNs and carriers
    )
)
_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
_LIKENESS = 0.75  # of what follows a known prefix
_WHOLE_LIKENESS = 0.9  # of a whole name: the environment is full of other programs' variables

ENVIRONMENT_FILE = Path(".env")
_LOCAL_TIME, _ZONE_NAME = Path("/etc/localtime"), Path("/etc/timezone")
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "f", "n"), False),
}
_TYPE_NAMES = {
    int: Sentence("a whole number", "整数"),
    float: Sentence("a number", "数字"),
    bool: Sentence("true or false", " true 或 false"),
    Path: Sentence("a path", "路径"),
}
_BOUNDS = {
    "ge": Sentence("at least", "不小于"),
    "gt": Sentence("more than", "大于"),
    "le": Sentence("at most", "不大于"),
}


class SettingsError(Exception):
    """A setting is missing, malformed or cannot be used: one sentence, with what to do. `zh` is the
    same in Chinese."""

    def __init__(self, sentence: str, zh: str = "") -> None:
        super().__init__(sentence)
        self.zh = zh or sentence


def require_values(
    requirements: Mapping[str, str], where: Sentence, *, typed_names: Iterable[str] = ()
) -> None:
    """Raises for the first variable without a value; of what is `typed_names` says what may be
    it."""
    for name, value in requirements.items():
        if not value:
            hint, hint_zh = _meant_hint(typed_names, [name])
            raise SettingsError(
                f"{name} is not set: {where.en}. See .env.example.{hint}",
                f"没有设置 {name}：{where.zh}。参见 .env.example。{hint_zh}",
            )


def require_one_value(
    either: Mapping[str, str], where: Sentence, *, typed_names: Iterable[str] = ()
) -> None:
    """Raises unless one of the variables has a value."""
    if not any(either.values()):
        hint, hint_zh = _meant_hint(typed_names, either)
        raise SettingsError(
            f"Neither {' nor '.join(either)} is set: {where.en}. See .env.example.{hint}",
            f"{' 和 '.join(either)} 都没有设置：{where.zh}。参见 .env.example。{hint_zh}",
        )


def require_private_key(name: str, value: str) -> None:
    """Raises unless `value` is empty or a private JWK, EC on P-256 or RSA, with its id."""
    if not value:
        return
    from memory.backends.supabase import (  # cryptography, for who has a key
        MalformedKey,
        key_of_jwk,
    )

    try:
        key_of_jwk(value)
    except MalformedKey as exc:
        raise SettingsError(
            f"{name} {exc}: it is the private key that `supabase gen signing-key` printed, in one "
            "line. See .env.example.",
            f"{name} 不可用：应为 `supabase gen signing-key` 输出的私钥，写在一行内。"
            "参见 .env.example。",
        ) from exc


def require_token_key(name: str, value: str) -> None:
    """Raises unless `value` is empty or 32 bytes in base64."""
    if not value:
        return
    try:
        Sealer.of(value)
    except TokenKeyInvalid as exc:
        command = "openssl rand -base64 32"
        raise SettingsError(
            f"{name} is not valid ({exc}): make one with `{command}`.",
            f"{name} 不可用：应为 32 字节的 base64，可用 `{command}` 生成。",
        ) from exc


def _meant_hint(typed_names: Iterable[str], names: Iterable[str]) -> tuple[str, str]:
    """In both languages, which variable was probably meant by one that is given."""
    wanted_names = set(names)
    corrections = {
        wrong: right
        for wrong, right in misspelt_names(typed_names, wanted_names).items()
        if right in wanted_names
    }
    english = (f" {wrong} is set: was {right} meant?" for wrong, right in corrections.items())
    chinese = (f"设置了 {wrong}：是否应为 {right}？" for wrong, right in corrections.items())
    return "".join(english), "".join(chinese)


def require_url(name: str, value: str, example: str) -> None:
    """Raises unless `value` is empty or an http:// or https:// URL with a host."""
    if value and _url_parts(value) is None:
        raise SettingsError(
            f"{name} is not a URL such as {example}. See .env.example.",
            f"{name} 不是网址，应形如 {example}。参见 .env.example。",
        )


def require_origin(name: str, value: str, example: str) -> None:
    """Raises unless `value` is an https:// origin, or an http:// one on this machine."""
    parts = _url_parts(value)
    if parts is None or (parts.path.strip("/") or parts.query or parts.fragment):
        raise SettingsError(
            f"{name} is not an origin such as {example}. See .env.example.",
            f"{name} 应只含协议和域名，形如 {example}。参见 .env.example。",
        )
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise SettingsError(
            f"{name} must be an https:// origin, or http:// on this machine.",
            f"{name} 必须以 https:// 开头；只有本机可用 http://。",
        )


def require_header_value(name: str, value: str) -> None:
    """Raises when `value` cannot be sent as a key: it was cut, or copied with something else."""
    if value and not _HEADER_VALUE.fullmatch(value):
        raise SettingsError(
            f"{name} holds a character that no key has: copy it once more.",
            f"{name} 含有密钥中不会出现的字符：请重新复制。",
        )


def require_names(name: str, value: str) -> None:
    """Raises unless `value` is empty or names of people with commas between, 64 characters each."""
    names = names_in(value) if value else []
    if any(not one or len(one) > 64 or not one.isprintable() for one in names):
        raise SettingsError(
            f"{name} is not a list of names such as ada, grace. See .env.example.",
            f"{name} 不是名字列表，应形如 ada, grace。参见 .env.example。",
        )


def names_in(value: str) -> list[str]:
    """The names of a list, with commas between, Chinese ones too; those left out are empty."""
    return [name.strip() for name in _BETWEEN_NAMES.split(value)]


def require_address(name: str, value: str) -> None:
    """Raises unless `value` is empty or an IP address."""
    try:
        ipaddress.ip_address(value or "127.0.0.1")
    except ValueError as exc:
        raise SettingsError(
            f"{name} is not an IP address such as 127.0.0.1 or 0.0.0.0. See .env.example.",
            f"{name} 不是 IP 地址，应形如 127.0.0.1 或 0.0.0.0。参见 .env.example。",
        ) from exc


def networks_of(name: str, value: str) -> tuple[Network, ...]:
    """Private IP networks with commas between. Raises `SettingsError`."""
    network_texts = [one.strip() for one in value.split(",")] if value else []
    try:
        networks = tuple(ipaddress.ip_network(one, strict=False) for one in network_texts)
    except ValueError as exc:
        raise SettingsError(
            f"{name} is not a list of networks such as 172.18.0.0/16, 10.1.2.3. See .env.example.",
            f"{name} 不是网段列表，应形如 172.18.0.0/16, 10.1.2.3。参见 .env.example。",
        ) from exc
    if not all(any(n[0] in private and n[-1] in private for private in _PRIVATE) for n in networks):
        raise SettingsError(
            f"{name} has addresses of the internet: name private networks only, such as "
            "172.18.0.0/16. See .env.example.",
            f"{name} 含有互联网地址：只能填写私有网段，如 172.18.0.0/16。参见 .env.example。",
        )
    return networks


def require_time_zone(name: str, value: str) -> None:
    """Raises unless `value` is empty or the IANA name of a time zone."""
    try:
        ZoneInfo(value or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise SettingsError(
            f"{name} is not the name of a time zone such as Asia/Shanghai or UTC. "
            "See .env.example.",
            f"{name} 不是时区名称，应形如 Asia/Shanghai 或 UTC。参见 .env.example。",
        ) from exc


def hours_of(name: str, value: str) -> tuple[int, int]:
    """Full hours such as 9-18 or 22-6, from and to. Raises for everything else."""
    match = re.fullmatch(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*", value, re.ASCII)
    begin, end = (int(match[1]), int(match[2])) if match else (0, 0)
    if begin == end or begin > 23 or end > 24:
        raise SettingsError(
            f"{name} is not a range of full hours such as 9-18. See .env.example.",
            f"{name} 不是整点时段，应形如 9-18。参见 .env.example。",
        )
    return begin, end


def require_database_url(name: str, value: str) -> None:
    """Raises unless `value` is empty or what libpq takes for a connection string."""
    try:
        ports = str(conninfo_to_dict(value).get("port", "5432"))
    except ProgrammingError:
        ports = "?"
    # A password with a slash ends the host too early, and its beginning counts as the port.
    if not re.fullmatch(r"[0-9,]*", ports):
        raise SettingsError(
            f"{name} is not a connection string such as postgresql://USER:PASSWORD@HOST:5432/NAME; "
            "special characters of the password are percent-encoded. See .env.example.",
            f"{name} 不是连接字符串，应形如 postgresql://USER:PASSWORD@HOST:5432/NAME；"
            "密码中的特殊字符需要百分号编码。参见 .env.example。",
        )


def misspelt_names(typed_names: Iterable[str], known_names: Iterable[str]) -> dict[str, str]:
    """Names that are not `known_names` and nearly are, each with the name that was probably
    meant."""
    ours = {name.upper() for name in known_names}
    corrections = {
        name: _meant_name(name.upper(), ours) for name in typed_names if name.upper() not in ours
    }
    return {name: right for name, right in sorted(corrections.items()) if right}


def _meant_name(name: str, known_names: Iterable[str]) -> str:
    likeness, best_name = max(
        ((_likeness(name, one), one) for one in sorted(known_names)), default=(0, "")
    )
    return best_name if likeness else ""


def _likeness(name: str, known_name: str) -> float:
    """0: another name altogether."""
    prefix, _, rest = known_name.partition("_")
    own_prefix, _, own_rest = name.partition("_")
    has_prefix = own_prefix == prefix and bool(rest)
    if (has_prefix and _is_like(own_rest, rest, _LIKENESS)) or _is_like(
        name, known_name, _WHOLE_LIKENESS
    ):
        return SequenceMatcher(None, name, known_name).ratio()
    return 0.0


def _is_like(name: str, known_name: str, least: float) -> bool:
    """True if the ratio of the two reaches `least`. Upper bounds of it rule most names out."""
    length, known_length = len(name), len(known_name)
    if 2 * min(length, known_length) < least * (length + known_length):
        return False
    match = SequenceMatcher(None, name, known_name)
    return match.quick_ratio() >= least and match.ratio() >= least


def _url_parts(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 (raises for what is no number)
    except ValueError:
        return None
    is_url = parts.scheme in ("http", "https") and _HOST.fullmatch(parts.hostname or "")
    return parts if is_url and not re.search(r"\s", value) else None


def environment_values() -> dict[str, str]:
    """Values by names in lower case; what is empty is not given, and the environment wins.

    Raises `OSError` and `UnicodeDecodeError` when there is a `.env` that cannot be read.
    """
    return {**_lower_names(file_values()), **_lower_names(os.environ)}


def value_of(value: object, kind: Any, **limits: Any) -> Any:
    """What is said, a text or a value, as the type `kind` within its limits (`ge`, `gt`, `le`).

    Raises InvalidValue with what it must be.
    """
    if isinstance(value, str) and kind is not str:
        value = value.strip()
        if bool in (kind, *get_args(kind)):
            value = _FLAGS.get(value.lower(), value)
    annotated_kind = Annotated[kind, msgspec.Meta(**limits)] if limits else kind
    try:
        return msgspec.convert(value, annotated_kind, strict=False, dec_hook=_made_value)
    except (msgspec.ValidationError, TypeError):
        must = _kind_in_words(kind, limits)
        raise InvalidValue(f"it must be {must.en}", f"必须是{must.zh}") from None


def base_of_endpoint(url: str) -> str:
    """The URL without the path of a call, with which many providers show it."""
    bare = url.rstrip("/")
    return next((bare.removesuffix(one) for one in _CALLS if bare.endswith(one)), bare)


def _lower_names(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name.lower(): value for name, value in values.items() if value}


def file_values() -> dict[str, str | None]:
    """What `.env` says. Raises `SettingsError` if it, or a line of it, cannot be read."""
    if not ENVIRONMENT_FILE.is_file():
        return {}
    from dotenv import dotenv_values, parser  # for who has such a file

    try:
        text = ENVIRONMENT_FILE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        name = type(exc).__name__
        raise SettingsError(
            f".env cannot be read ({name}): write it anew.",
            f".env 无法读取（{name}）：请重新编写。",
        ) from exc
    for one in parser.parse_stream(StringIO(text)):
        if one.error:
            written = one.original.string
            line = one.original.line + len(written) - len(written.lstrip("\n"))
            raise SettingsError(
                f".env cannot be read, line {line}: write NAME=value, and close its quotes.",
                f".env 第 {line} 行无法读取：应写成 NAME=value，引号要成对。",
            )
    return dotenv_values(stream=StringIO(text))


def _made_value(kind: type, value: Any) -> Any:
    """A type that msgspec does not know: a path."""
    return kind(value)


def _kind_in_words(kind: Any, limits: Mapping[str, float]) -> Sentence:
    """In words, such as “a whole number, at least 1, at most 32”."""
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return Sentence(" or ".join(words), " " + " 或 ".join(words))
    plain = next((one for one in get_args(kind) if one is not NoneType), kind)
    bounds = [(word, limits[name]) for name, word in _BOUNDS.items() if name in limits]
    name = _TYPE_NAMES.get(plain, Sentence("a text", "文字"))
    return Sentence(
        ", ".join((name.en, *(f"{word.en} {number:g}" for word, number in bounds))),
        "，".join((name.zh, *(f"{word.zh} {number:g}" for word, number in bounds))),
    )


def machine_zone(local_time: Path = _LOCAL_TIME, zone_file: Path = _ZONE_NAME) -> str:
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
