"""The simulated group is for this machine: what a web page elsewhere can send is refused.

Browsers cannot be told to lie about Host, Origin and Sec-Fetch-Site; so these are sent as they do.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from lab.doubles.processes import (
    Process,
    free_port,
    running_platform,
    start,
    stop,
    wait_for_http,
)

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]
EVIL = "http://evil.example"
PATHS = [
    "/",
    "/sandbox/static/main.js",
    "/sandbox/api/state",
    "/sandbox/api/messages",
    "/sandbox/api/stream",
    "/sandbox/api/inspect?chat_id=oc_1",
    "/open-apis/bot/v3/info",
]


@dataclass
class Served:
    """Where the simulated group is served."""

    port: int

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: object = None
    ) -> tuple[int, bytes]:
        """Status and the beginning of the answer; the Host as it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = json.dumps(body).encode() if body is not None else b""
        given = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(sent)), **headers}
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(sent)
            answer = connection.getresponse()
            stream = answer.headers["Content-Type"].startswith("text/event-stream")
            return answer.status, answer.read1(100) if stream else answer.read()
        finally:
            connection.close()

    def state(self) -> bytes:
        status, found = self.ask("GET", "/sandbox/api/state", {})
        assert status == 200
        return found


@pytest.fixture(scope="module", params=["mounted in the bot", "by itself"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("origin")
    if request.param == "by itself":
        with running_platform(folder, "") as platform:
            yield Served(int(platform.url.rsplit(":", 1)[1]))
        return
    port = free_port()
    environment = {"PORT": str(port), "DATA_DIR": str(folder)}
    process: Process = start("bot", COMMAND, folder, environment)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/readyz", process)
        yield Served(port)
    finally:
        stop(process)


@pytest.mark.parametrize("path", PATHS)
def test_a_name_that_leads_here_is_not_answered(served: Served, path: str) -> None:
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1.evil.example", ""):
        status, found = served.ask("GET", path, {"Host": host})
        assert (status, b"people" in found) == (403, False), host


@pytest.mark.parametrize("path", PATHS[1:])
def test_another_page_can_neither_read_nor_follow(served: Served, path: str) -> None:
    for headers in (
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{served.port + 1}"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert served.ask("GET", path, headers)[0] == 403, headers


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_another_page_cannot_speak_as_somebody(served: Served, kind: str) -> None:
    state = json.loads(served.state())
    said = {
        "as": state["people"][0]["open_id"],
        "chat_id": state["chats"][0]["chat_id"],
        "text": "planted",
    }
    for headers in ({"Origin": EVIL}, {"Host": "evil.example", "Origin": EVIL}):
        status, _ = served.ask(
            "POST", "/sandbox/api/messages", {**headers, "Content-Type": kind}, said
        )
        assert status == 403
    assert served.ask("DELETE", "/sandbox/api/tokens", {"Origin": EVIL})[0] == 403
    assert b"planted" not in served.ask("GET", "/sandbox/api/messages", {})[1]


def test_its_own_page_and_programs_of_this_machine_are_served(served: Served) -> None:
    host = f"localhost:{served.port}"
    own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert served.ask("GET", "/sandbox/api/state", own)[0] == 200
    assert served.ask("GET", "/sandbox/api/stream", own)[0] == 200
    assert served.ask("GET", "/", {"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link to it
    assert served.ask("GET", "/", {"Host": f"[::1]:{served.port}"})[0] == 200
