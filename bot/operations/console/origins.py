"""Which requests the console takes: of this machine's browser, from its own pages. Pure.

It is reached over loopback, from elsewhere through a tunnel. A page of another site must not use
it: neither by a name of its own that leads here (the Host is wrong) nor across origins.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

from werkzeug.datastructures import Headers

from bot.operations.console.texts import CATALOGUE
from bot.text.languages import Sentence

_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OWN_SITE = frozenset({"", "same-origin", "none"})
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


def refusal(
    headers: Headers,
    *,
    scheme: str,
    method: str,
    address: str,
    networks: Sequence[IPv4Network | IPv6Network] = (),
) -> Sentence | None:
    """Why a request is not for us; None when it is. `address`: who is connected; `networks`: from
    where the console is used beside this machine, as a published port of a container is."""
    host = headers.get("Host", "").lower()
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    if (
        name not in _NAMES
        or any(one in headers for one in _FORWARDED)
        or not _is_near(address, networks)
    ):
        return CATALOGUE.both("not_here")
    if headers.get("Origin", f"{scheme}://{host}").lower() != f"{scheme}://{host}":
        return CATALOGUE.both("other_page")
    # a link to a page may stand anywhere; the cookie does not come along with it
    is_navigation = method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
    if headers.get("Sec-Fetch-Site", "") not in _OWN_SITE and not is_navigation:
        return CATALOGUE.both("other_page")
    return None


def _is_near(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        parsed_address = ipaddress.ip_address(address)
    except ValueError:
        return False
    parsed_address = getattr(parsed_address, "ipv4_mapped", None) or parsed_address
    return parsed_address.is_loopback or any(parsed_address in network for network in networks)
