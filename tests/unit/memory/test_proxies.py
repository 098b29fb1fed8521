"""Proxies in the environment: what can be used is used, and nothing else stops the bot."""

from __future__ import annotations

import httpx
import pytest

from memory.backends.supabase import SupabaseRpc, key_of_secret
from memory.proxies import IgnoredProxy, ignored_proxies, proxy_for
from tests.support.rows import every_row

URL = "https://abc.supabase.co"
PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


@every_row(
    ("environment", "proxy"),
    [
        ({}, None),
        (PROXY, "http://proxy:3128"),
        ({**PROXY, "https_proxy": "proxy2:1"}, "http://proxy2:1"),
        ({"ALL_PROXY": "http://p@ss:p%40ss@proxy:3128"}, "http://p@ss:p%40ss@proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, None),
        ({"ALL_PROXY": "socks5://127.0.0.1:1080"}, None),
        ({"all_proxy": "socks5h://127.0.0.1:1080", **PROXY}, "http://proxy:3128"),
        ({"HTTPS_PROXY": "socks4://x:1", "ALL_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://"}, None),
        ({"HTTPS_PROXY": "http://proxy:port"}, None),
        ({"HTTPS_PROXY": "http://user:p@ss#1@proxy:3128"}, None),
        ({"HTTPS_PROXY": "http://pro xy:3128"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128/?x"}, None),
        ({"HTTPS_PROXY": "http://[::1]:3128/"}, "http://[::1]:3128/"),
        ({**PROXY, "NO_PROXY": "*"}, None),
        ({**PROXY, "NO_PROXY": "localhost, .supabase.co"}, None),
        ({**PROXY, "NO_PROXY": "*.supabase.co"}, None),
        ({**PROXY, "NO_PROXY": "supabase.co:8443"}, "http://proxy:3128"),
        ({**PROXY, "no_proxy": "localhost;[::1];fd00:1234::/64"}, "http://proxy:3128"),
        ({**PROXY, "NO_PROXY": "base.co"}, "http://proxy:3128"),
    ],
)
def test_the_proxy_of_an_address(environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(URL, environment) == proxy


@every_row(
    ("host", "entry", "direct"),
    [
        ("[::1]", "[::1]", True),
        ("[::1]", "::1", True),
        ("[::1]:8000", "[::1]:8000", True),
        ("[::1]:8000", "[::1]:9000", False),
        ("[fd00:1234::5]", "fd00:1234::/64", True),
        ("[fd00:9999::5]", "fd00:1234::/64", False),
        ("127.0.0.9", "127.0.0.0/8", True),
        ("127.0.0.9", "10.0.0.0/8,::1/128", False),
        ("db.internal", ".internal", True),
        ("localhost", " localhost , ,127.0.0.1", True),
        ("db.internal", "db.internal:443", True),
        ("db.internal:8443", "db.internal:443", False),
        ("10.0.0.9", "10.0.0.9:443", True),
        ("192.168.1.5", "192.168.*", True),
        ("192.169.1.5", "192.168.*", False),
        ("api.eu.internal", "api.*.internal", True),
        ("db.internal", "*:443", True),
        ("db.internal", "*:80", False),
        ("[fd00::5]", "[fd00::]/8", True),
        ("[::ffff:10.0.0.1]", "10.0.0.0/8", True),
        ("db.internal.", "internal", True),
        ("db.internal", "internal.", True),
        ("db.internal", "https://db.internal/", True),
    ],
)
def test_addresses_and_networks_are_reached_directly(host: str, entry: str, direct: bool) -> None:
    found = proxy_for(f"https://{host}", {**PROXY, "NO_PROXY": entry})
    assert (found is None) == direct


def test_a_variable_that_cannot_be_used_is_named_without_its_value() -> None:
    environment = {"ALL_PROXY": "socks5://user:s3cret@x:1", "https_proxy": "ftp://x", **PROXY}
    assert ignored_proxies(environment) == (
        IgnoredProxy("https_proxy", "it is no address of a proxy"),
        IgnoredProxy("ALL_PROXY", "SOCKS proxies are not supported"),
    )
    assert ignored_proxies({**PROXY, "NO_PROXY": "[::1]"}) == ()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "environment",
    [
        {"ALL_PROXY": "socks5://127.0.0.1:1080", "all_proxy": "socks5h://127.0.0.1:1080"},
        {"HTTPS_PROXY": "socks5://127.0.0.1:1080"},
        {"NO_PROXY": "localhost,127.0.0.1,[::1]"},
        {"NO_PROXY": "localhost,127.0.0.1,::1,fd00:1234::/64"},
        {"no_proxy": "localhost,127.0.0.0/8,::1/128,*.internal,.local"},
    ],
)
async def test_the_client_of_supabase_is_made_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for url in (URL, "http://localhost:1"):
        rpc = SupabaseRpc(url, publishable_key="p", secret_key="s", signing=key_of_secret("x" * 32))
        await rpc.close()


@pytest.mark.anyio
async def test_a_proxy_that_can_be_used_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    rpc = SupabaseRpc(URL, publishable_key="p", secret_key="s", signing=key_of_secret("x" * 32))
    transport = rpc._http._transport_for_url(httpx.URL(URL))
    assert type(transport._pool).__name__ == "AsyncHTTPProxy"  # type: ignore[attr-defined]
    await rpc.close()
