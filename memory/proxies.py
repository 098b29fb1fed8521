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
from urllib.parse import urlsplit

_BY_SCHEME = {"https": ("https_proxy", "all_proxy"), "http": ("http_proxy", "all_proxy")}
_SEPARATORS = re.compile(r"[\s,;]+")


@dataclass(frozen=True, slots=True)
class IgnoredProxy:
    """A variable that is not used. The reason holds nothing of its value but the scheme."""

    variable: str
    reason: str


def proxy_for(url: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The proxy for `url`, with its scheme; None if it is to be reached directly."""
    variables = os.environ if environment is None else environment
    parts = urlsplit(url)
    if _is_direct(parts.hostname or "", parts.port, variables):
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
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return url if has_host and parts.scheme.lower() in ("http", "https") else None


def _is_direct(host: str, port: int | None, variables: Mapping[str, str]) -> bool:
    no_proxy = _set("no_proxy", variables)
    entries = _SEPARATORS.split(no_proxy[1]) if no_proxy else []
    return any(_matches(entry.lower(), host.lower(), port) for entry in entries if entry)


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    name, wanted_port = _split_entry(entry)
    if wanted_port is not None and wanted_port != port:
        return False
    if (address := _address(host)) is not None:
        network = _network(name)
        return network is not None and address in network
    domain = name.removeprefix("*").removeprefix(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_entry(entry: str) -> tuple[str, int | None]:
    """Host and port of an entry; an IPv6 address has colons of its own."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        rest = rest.removeprefix(":")
        return name, int(rest) if rest.isdigit() else None
    name, colon, rest = entry.rpartition(":")
    return (name, int(rest)) if colon and ":" not in name and rest.isdigit() else (entry, None)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None
