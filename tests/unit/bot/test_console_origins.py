"""The console is asked for by this machine's names alone."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import Headers

from bot.console.origins import refusal


def ask(method: str = "GET", address: str = "127.0.0.1", **headers: str):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal(Headers(given), scheme="http", method=method, address=address)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:8080", "[::1]:8080"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "172.17.0.1"])
def test_this_machine_and_its_containers_may(host: str, address: str) -> None:
    assert ask(Host=host, address=address) is None
    assert ask("POST", Host=host, Origin=f"http://{host}", address=address) is None


@pytest.mark.parametrize("address", ["", "nonsense", "8.8.8.8", "2001:4860:4860::8888"])
def test_others_may_not(address: str) -> None:
    assert ask(Host="127.0.0.1", address=address)


def test_a_link_elsewhere_leads_to_a_page_and_to_no_write() -> None:
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ask(Host="localhost", **followed) is None
    assert ask("POST", Host="localhost", **followed)
