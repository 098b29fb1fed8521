"""Real sockets on loopback: connections are kept, shared and replaced when they die."""

import asyncio
import gzip
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.errors import ResourceTooLarge, Unreachable
from bot.feishu.transport import ApiRequest, ApiResponse, Timeouts, Transport, encode
from tests.support.certificates import certificate, server_tls
from tests.support.feishu_api import Asked, FeishuApi, feishu_api
from tests.support.rows import every_row

ASK = ApiRequest("POST", "/x", body={})
QUICK = Timeouts(0.2, 0.2)


@pytest.fixture(autouse=True)
def usual_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FeishuApi]:
    with feishu_api() as api:
        api.answers("POST", "/x", {"code": 0})
        yield api


def using(
    domain: str, calls: Callable[[Transport], Awaitable[Any]], timeouts: Timeouts | None = None
) -> Any:
    """What `calls` gives, with a transport that is closed afterwards."""

    async def run() -> Any:
        transport = Transport(domain, timeouts=timeouts)
        try:
            return await calls(transport)
        finally:
            await transport.close()

    return asyncio.run(run())


def answer(domain: str, request: ApiRequest = ASK, timeouts: Timeouts | None = None) -> ApiResponse:
    found: ApiResponse = using(domain, lambda transport: transport.send(request, "t-1"), timeouts)
    return found


def test_calls_after_each_other_use_one_connection(server):
    async def calls(transport: Transport) -> list[int]:
        return [(await transport.send(ASK)).status for _ in range(20)]

    assert using(server.url + "/", calls) == [200] * 20
    assert server.connections == 1


def test_no_more_connections_are_opened_than_a_process_may_have(server, monkeypatch):
    monkeypatch.setattr("bot.feishu.transport.CONCURRENCY", 8)

    async def calls(transport: Transport) -> list[int]:
        answers = await asyncio.gather(*(transport.send(ASK) for _ in range(100)))
        return [one.status for one in answers]

    assert using(server.url, calls, Timeouts(60, 60)) == [200] * 100
    assert server.connections <= 8


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(server):
    async def calls(transport: Transport) -> list[int]:
        closing = {"Connection": "close"}
        server.answers("POST", "/y", {"code": 0}, headers=closing)
        answers = []
        for _ in range(3):
            answers.append((await transport.send(ApiRequest("POST", "/y", body={}))).status)
            await asyncio.sleep(0)
        return answers

    assert using(server.url, calls) == [200] * 3
    assert server.connections == 3


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
@pytest.mark.parametrize("trouble", ["cut", "reset", "half"])
def test_what_may_have_arrived_is_not_repeated_here(server, method, trouble):
    server.answers(method, "/fate", {"code": 0}, trouble=trouble)

    async def calls(transport: Transport) -> None:
        await transport.send(ASK)
        with pytest.raises(Unreachable):
            await transport.send(ApiRequest(method, "/fate", body={}))

    using(server.url, calls)
    assert [asked.path for asked in server.asked] == ["/x", "/fate"]


def test_a_closed_port_is_unreachable():
    with pytest.raises(Unreachable, match="ConnectorError"):
        answer("http://127.0.0.1:9", ApiRequest("GET", "/x"), QUICK)


def test_a_server_that_never_answers_is_given_up(server):
    server.answers("GET", "/x", trouble="hang")
    with pytest.raises(Unreachable, match="Timeout"):
        answer(server.url, ApiRequest("GET", "/x"), QUICK)


def test_a_server_that_never_shakes_hands_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        domain = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(Unreachable, match="ConnectionTimeout"):
            answer(domain, timeouts=Timeouts(0.2, 30))


@every_row("domain", ["http://[::1", "http://", "ftp://127.0.0.1", "127.0.0.1"])
def test_an_address_that_is_none_is_unreachable(domain):
    with pytest.raises(Unreachable):
        answer(domain)


def test_the_environment_changes_nothing(server, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eve password eve")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert using(server.url, lambda transport: transport.send(ASK)).status == 200
    assert "Authorization" not in server.asked[0].headers


def test_a_request_does_not_show_its_body():
    assert "secret" not in repr(ApiRequest("POST", "/x", body={"app_secret": "secret"}))


def test_a_request_has_the_headers_that_it_needs_and_no_cookies(server):
    server.answers("GET", "/x", {"code": 0}, headers={"Set-Cookie": "a=b"})

    async def calls(transport: Transport) -> None:
        await transport.send(ApiRequest("GET", "/x", headers={"locale": "zh"}), "t-1")
        await transport.send(ASK)

    using(server.url, calls)
    first, second = (sent(asked) for asked in server.asked)
    assert first == {
        "user-agent": "feishu-memory-bot",
        "accept-encoding": "gzip, deflate",
        "authorization": "Bearer t-1",
        "locale": "zh",
    }
    assert second["content-type"] == "application/json; charset=utf-8"
    assert {"cookie", "authorization"}.isdisjoint(second)


def sent(asked: Asked) -> dict[str, str]:
    named = {name.lower(): value for name, value in asked.headers.items()}
    return {name: value for name, value in named.items() if name != "host"}


def test_a_path_and_its_query_travel_as_they_are(server):
    query: dict[str, str | int] = {"page_token": "a+b/c= d&你", "page_size": 50}
    server.answers("GET", "/m/r%2F1%20x/%E4%BD%A0", {"code": 0})
    answer(server.url, ApiRequest("GET", "/m/r%2F1%20x/%E4%BD%A0", query))
    assert server.asked[0].target.startswith("/m/r%2F1%20x/%E4%BD%A0?")
    assert server.asked[0].query == {"page_token": "a+b/c= d&你", "page_size": "50"}


def test_a_compressed_answer_is_unpacked_up_to_its_limit(server):
    packed = gzip.compress(b"x" * 5_000_000)
    server.answers("GET", "/x", packed, headers={"Content-Encoding": "gzip"})
    assert len(answer(server.url, ApiRequest("GET", "/x", max_bytes=5_000_000)).body) == 5_000_000
    with pytest.raises(ResourceTooLarge):
        answer(server.url, ApiRequest("GET", "/x", max_bytes=4_999_999))


def test_an_answer_that_cannot_be_unpacked_is_unreachable(server):
    server.answers("GET", "/x", b"not gzip", headers={"Content-Encoding": "gzip"})
    with pytest.raises(Unreachable):
        answer(server.url, ApiRequest("GET", "/x"))


def test_all_connections_share_one_tls_context(tmp_path, monkeypatch):
    authority = certificate(tmp_path)
    asked: list[Path] = []
    monkeypatch.setattr(certifi, "where", lambda: asked.append(authority) or str(authority))
    with feishu_api(tls=server_tls(authority)) as server:
        server.answers("POST", "/x", {"code": 0}, headers={"Connection": "close"})

        async def calls(transport: Transport) -> list[int]:
            return [(await transport.send(ASK)).status for _ in range(3)]

        assert using(server.url, calls) == [200] * 3
    assert server.connections == 3
    assert len(asked) == 1


def test_an_authority_of_ones_own_is_trusted(tmp_path, monkeypatch):
    authority = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with feishu_api(tls=server_tls(authority)) as server:
        server.answers("POST", "/x", {"code": 0})
        assert answer(server.url).status == 200


def test_a_certificate_of_nobody_who_is_trusted_is_refused(tmp_path):
    with feishu_api(tls=server_tls(certificate(tmp_path))) as server:
        server.answers("POST", "/x", {"code": 0})
        with pytest.raises(Unreachable, match="Certificate"):
            answer(server.url)
    assert server.asked == []


def test_a_certificate_of_another_address_is_refused(tmp_path, monkeypatch):
    authority = certificate(tmp_path, "127.0.0.2")
    monkeypatch.setattr(certifi, "where", lambda: str(authority))
    api = FeishuApi()
    with feishu_api(api, tls=server_tls(authority)), pytest.raises(Unreachable, match="Certif"):
        answer(api.url)
    assert api.asked == []


@given(st.text(st.characters(codec=None, exclude_categories=())), st.integers(0, 2**31))
def test_a_body_is_the_compact_json_of_its_values_with_lone_halves_replaced(text, number):
    body = {"content": text, "sequence": number, "flags": [True, None, {"你": text}]}
    compact = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    assert encode(body) == compact.encode("utf-8", "replace")


def test_whether_something_may_have_been_done_is_known(server):
    server.answers("GET", "/x", trouble="hang")
    with pytest.raises(Unreachable) as unknown:
        answer(server.url, ApiRequest("GET", "/x"), QUICK)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unreachable) as undone:
        answer(nobody)
    assert unknown.value.maybe_done
    assert not undone.value.maybe_done
