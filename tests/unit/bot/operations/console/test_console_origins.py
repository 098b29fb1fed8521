"""The console is asked for by this machine's names alone."""

from __future__ import annotations

from ipaddress import ip_network

from werkzeug.datastructures import Headers

from bot.operations.console.application import request_refusal
from tests.support.rows import every_row


def ask(method: str = "GET", address: str = "127.0.0.1", networks=(), **headers: str):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return request_refusal(
        Headers(given), scheme="http", method=method, address=address, networks=networks
    )


@every_row("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:8080", "[::1]:8080"])
@every_row("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_this_machine_may(host: str, address: str) -> None:
    assert ask(Host=host, address=address) is None
    assert ask("POST", Host=host, Origin=f"http://{host}", address=address) is None


@every_row(
    "address",
    ["", "nonsense", "8.8.8.8", "2001:4860:4860::8888", "172.17.0.1", "10.0.0.5", "192.168.1.7"],
)
def test_others_may_not(address: str) -> None:
    assert ask(Host="127.0.0.1", address=address)


def test_a_network_that_is_named_may_and_its_neighbours_may_not() -> None:
    networks = (ip_network("172.18.0.0/16"), ip_network("fd00:18::/64"))

    def refused(address: str, **headers: str) -> bool:
        return bool(ask(address=address, networks=networks, **{"Host": "localhost", **headers}))

    assert not refused("172.18.0.1")
    assert not refused("::ffff:172.18.0.1")
    assert not refused("fd00:18::1")
    assert refused("172.19.0.1")
    assert refused("172.18.0.1", Host="172.18.0.2")
    assert refused("172.18.0.1", X_Forwarded_For="172.18.0.9")


def test_a_link_elsewhere_leads_to_a_page_and_to_no_write() -> None:
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ask(Host="localhost", **followed) is None
    assert ask("POST", Host="localhost", **followed)
