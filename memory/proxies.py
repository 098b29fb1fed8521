"""Chooses the HTTP proxy for an address from the environment, as curl reads it. Pure.

The HTTP clients would read the environment themselves, and raise for what they do not know: a SOCKS
proxy, or an IPv6 address in NO_PROXY. A variable that cannot be used must not stop the bot.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

_BY_SCHEME = {"https": ("https_proxy", "all_proxy"), "http": ("http_proxy", "all_proxy")}
_PORTS = {"https": 443, "http": 80}
_SEPARATORS = re.compile(r"[\s,;]+")
_HOST = re.compile(r"[a-z0-9._:%-]+")


@dataclass(frozen=True, slots=True)
class IgnoredProxy:
    """A variable that is not used. The reason holds nothing of its value but the scheme."""

    variable: str
    reason: str


def proxy_for(url: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The proxy for `url`, with its scheme; None if it is to be reached directly."""
    variables = os.environ if environment is None else environment
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme)
    if _is_direct(parts.hostname or "", port, variables):
        return None
    candidates = (_set(name, variables) for name in _BY_SCHEME.get(parts.scheme, ()))
    usable = (_usable(value) for _, value in filter(None, candidates))
    return next(filter(None, usable), None)


def ignored_proxies(environment: Mapping[str, str] | None = None) -> tuple[IgnoredProxy, ...]:
    """The variables that name a proxy which cannot be used."""
    variables = os.environ if environment is None else environment
    return tuple(_ignored_proxies(variables))


def _ignored_proxies(variables: Mapping[str, str]) -> Iterator[IgnoredProxy]:
    for name in ("https_proxy", "all_proxy", "http_proxy"):
        value = _set(name, variables)
        if value and not _usable(value[1]):
            scheme = value[1].partition("://")[0].lower()
            is_socks = scheme.startswith("socks")
            why = "SOCKS proxies are not supported" if is_socks else "it is no address of a proxy"
            yield IgnoredProxy(value[0], why)


def _set(name: str, variables: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable, in lower case first, and its value."""
    candidates = ((one, variables.get(one, "").strip()) for one in (name, name.upper()))
    return next(((one, value) for one, value in candidates if value), None)


def _usable(value: str) -> str | None:
    """The address of a proxy, with its scheme. A password may hold signs that end an address: then
    a part of it would be taken for the host, and told in errors."""
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        is_host = bool(_HOST.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:
        return None
    is_address = is_host and parts.path in ("", "/") and not (parts.query or parts.fragment)
    return url if is_address and parts.scheme.lower() in ("http", "https") else None


def _is_direct(host: str, port: int | None, variables: Mapping[str, str]) -> bool:
    no_proxy = _set("no_proxy", variables)
    entries = _SEPARATORS.split(no_proxy[1].lower()) if no_proxy else []
    plain_host = host.lower().rstrip(".")
    return any(_matches(entry, plain_host, port) for entry in entries if entry)


def _matches(entry: str, host: str, port: int | None) -> bool:
    name, wanted_port = _split_entry(entry.rpartition("://")[2].rstrip("/"))
    if wanted_port not in (None, port):
        return False
    name = name.rstrip(".")
    if "*" in name.removeprefix("*."):
        return fnmatchcase(host, name)
    if (address := _address(host)) is not None:
        network = _network(name)
        return network is not None and address in network
    domain = name.removeprefix("*").removeprefix(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_entry(entry: str) -> tuple[str, int | None]:
    """Host and port of an entry; an IPv6 address has colons of its own."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
        return (name, int(port)) if port.isdecimal() else (f"{name}{rest}", None)
    name, colon, rest = entry.rpartition(":")
    return (name, int(rest)) if colon and ":" not in name and rest.isdecimal() else (entry, None)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None
