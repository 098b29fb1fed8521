"""The worker of the web process as a sender sees it: real gunicorn, real connections."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Iterator

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.intake.receiving import MAX_REQUEST_BYTES, RECEIVE_S, has_room
from lab.doubles.processes import free_port, start, stop, wait_for_http
from tests.support.patience import limit_s

APP = """
from flask import Flask, request

app = Flask(__name__)

@app.route("/", methods=["GET", "POST"])
@app.route("/<path>", methods=["GET", "POST"])
def echo(path=""):
    return f"/{path} {len(request.stream.read())}"
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """One gunicorn process with two threads and room for twenty connections."""
    folder = tmp_path_factory.mktemp("receiving")
    (folder / "echo_app.py").write_text(APP)
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "-k", "bot.intake.receiving.ReceivingWorker",
        "-b", f"127.0.0.1:{port}", "--threads", "2", "--worker-connections", "20",
        "--keep-alive", "30", "--pythonpath", str(folder), "--no-control-socket", "echo_app:app",
    ]  # fmt: skip
    process = start("gunicorn", command, folder)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/", process)
        yield port
    finally:
        stop(process)


def connected(port: int, text: bytes = b"") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), timeout=RECEIVE_S + 5)
    one.sendall(text)
    return one


def everything(one: socket.socket) -> bytes:
    """What is answered until the server closes."""
    found = b""
    while piece := one.recv(65536):
        found += piece
    return found


def is_closed(one: socket.socket) -> bool:
    """Waits until the server ends the connection."""
    with contextlib.suppress(ConnectionResetError):
        return one.recv(1) == b""
    return True


def test_a_body_is_read_whole_with_a_length_and_in_chunks(port: int) -> None:
    url = f"http://127.0.0.1:{port}/path"
    assert requests.post(url, b"x" * 3_000_000, timeout=10).text == "/path 3000000"
    pieces = (b"y" * 1000 for _ in range(300))
    assert requests.post(url, pieces, timeout=10).text == "/path 300000"


def test_a_connection_serves_requests_one_after_the_other_and_in_one_go(port: int) -> None:
    with requests.Session() as session:
        for number in range(5):
            assert (
                session.get(f"http://127.0.0.1:{port}/{number}", timeout=5).text == f"/{number} 0"
            )
    last = b"GET /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    post = b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
    with connected(port, b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n" + post + last) as one:
        answers = everything(one)
    assert [answers.count(word) for word in (b"/a 0", b"/b 2", b"/c 0")] == [1, 1, 1]


def test_the_go_ahead_is_said_once(port: int) -> None:
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n"
    with connected(port, head + b"EXPECT: 100-Continue\r\n\r\n") as one:
        assert one.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"hi")
        assert b" 200 OK" in everything(one).splitlines()[0]


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n",
        b"POST /x HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n",
    ],
)
def test_no_go_ahead_is_said_with_the_body_there(port: int, request_: bytes) -> None:
    with connected(port, request_ + b"Connection: close\r\n\r\nhi") as one:
        assert b" 200 OK" in everything(one).splitlines()[0]


def test_no_go_ahead_is_said_to_http_1_0(port: int) -> None:
    head = b"POST /x HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    with connected(port, head) as one:
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one.recv(100)
        one.settimeout(RECEIVE_S)
        one.sendall(b"hi")
        assert b" 200 OK" in everything(one).splitlines()[0]


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("value", [b"a-miracle", b"", b"100-continue, more", b"100"])
def test_another_expectation_is_not_met(port: int, version: bytes, value: bytes) -> None:
    started = time.monotonic()
    head = b"POST /x HTTP/%b\r\nHost: a\r\nContent-Length: 2\r\nExpect: %b\r\n\r\n"
    with connected(port, head % (version, value)) as one:
        assert everything(one).startswith(b"HTTP/1.1 417 ")
    assert time.monotonic() - started < RECEIVE_S / 2


@pytest.mark.parametrize(
    "text",
    [
        b"hello\r\n",
        b"GET /\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost a\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n",
        b"GET / HTTP/1.1\r\nHost: a\0",
        b"GET / HTTP/1.1\r\nHost: a\rX: b",
        b"GET / HTTP/2\r\nHost: a",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_malformed_head_is_refused_at_once(port: int, text: bytes) -> None:
    started = time.monotonic()
    with connected(port, text) as one:
        assert everything(one).startswith(b"HTTP/1.1 400 ")
    assert time.monotonic() - started < RECEIVE_S / 2


@pytest.mark.parametrize("name", [b"SCRIPT_NAME", b"Script_Name", b"PATH_INFO", b"SCRIPT-NAME"])
def test_no_header_moves_the_path(port: int, name: bytes) -> None:
    head = b"GET /front HTTP/1.1\r\nHost: a\r\n%b: /fr\r\nConnection: close\r\n\r\n"
    with connected(port, head % name) as one:
        assert everything(one).endswith(b"/front 0")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"hello\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b" 400 "),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", b" 400 "),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * 2000, b" 400 "),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(
    port: int, request_: bytes, status: bytes
) -> None:
    with connected(port, request_) as one:
        assert status in everything(one).splitlines()[0]


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
MALFORMED = {
    "an extension without a value": b"2\r\nhi\r\n0;a=\r\n\r\n",
    "an extension without a name": b"2;=b\r\nhi\r\n0\r\n\r\n",
    "an extension with a bare CR": b"2;a\rb\r\nhi\r\n0\r\n\r\n",
    "an extension with an open quote": b'2;a="b\r\nhi\r\n0\r\n\r\n',
    "a space before the end of a size": b"2 \r\nhi\r\n0\r\n\r\n",
    "a sign": b"+2\r\nhi\r\n0\r\n\r\n",
    "a prefix": b"0x2\r\nhi\r\n0\r\n\r\n",
    "an underscore": b"0_2\r\nhi\r\n0\r\n\r\n",
    "a size of many digits": b"0" * 20 + b"2\r\nhi\r\n0\r\n\r\n",
    "a chunk longer than its size": b"2\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with LF": b"2\r\nhi\n\n0\r\n\r\n",
    "a trailer without a colon": b"2\r\nhi\r\n0\r\nnonsense\r\n\r\n",
    "a trailer with a space in its name": b"2\r\nhi\r\n0\r\na b: c\r\n\r\n",
    "a trailer that frames": b"2\r\nhi\r\n0\r\nContent-Length: 9\r\n\r\n",
    "a trailer with a NUL": b"2\r\nhi\r\n0\r\na: \0\r\n\r\n",
    "a trailer that is folded": b"2\r\nhi\r\n0\r\na: b\r\n c\r\n\r\n",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_body_is_refused_before_the_application_sees_it(port: int, what: str) -> None:
    with connected(port, CHUNKED + MALFORMED[what]) as one:
        assert everything(one).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "body",
    [
        b"2\r\nhi\r\n0\r\n\r\n",
        b'1;a=b\r\nh\r\n1 ;c="d; e"\r\ni\r\n0;f\r\n\r\n',
        b"2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
    ],
)
def test_a_body_in_chunks_arrives_whole(port: int, body: bytes) -> None:
    with connected(port, CHUNKED.replace(b"POST /", b"POST /chunks") + body) as one:
        assert b"/chunks 2" in everything(one)


@given(junk=st.binary(max_size=60), at=st.integers(0, 40))
@settings(max_examples=40)
def test_no_body_makes_an_error_of_the_server(port: int, junk: bytes, at: int) -> None:
    whole = b"5;a=b\r\nhello\r\n0;c\r\nX-Sum: 1\r\n\r\n"
    with connected(port, CHUNKED + whole[:at] + junk + whole[at:] + b"\r\n0\r\n\r\n") as one:
        one.shutdown(socket.SHUT_WR)
        assert everything(one)[:13] in (b"HTTP/1.1 200 ", b"HTTP/1.1 400 ", b"")


def test_a_head_without_end_is_cut_off_before_its_deadline(port: int) -> None:
    started = time.monotonic()
    with connected(port, b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000) as one:
        assert everything(one).startswith(b"HTTP/1.1 400 ")
    assert time.monotonic() - started < RECEIVE_S / 2


def test_a_body_that_is_too_large_is_not_waited_for(port: int) -> None:
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {MAX_REQUEST_BYTES + 1}\r\n\r\n"
    with connected(port, head.encode()) as one:
        assert b" 400 " in everything(one).splitlines()[0]


def test_a_request_that_does_not_become_whole_is_given_up_after_its_deadline(port: int) -> None:
    started = time.monotonic()
    with connected(port, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n") as one:
        for _ in range(5):
            one.send(b"x")
            time.sleep(1)
        assert everything(one).startswith(b"HTTP/1.1 408 ")
    assert RECEIVE_S - 1 < time.monotonic() - started < limit_s(RECEIVE_S + 3)


def test_where_there_is_no_room_who_waits_longest_goes_and_the_next_is_answered(port: int) -> None:
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(connected(port, b"POST / HTTP/1.1\r\n")) for _ in range(30)]
        assert requests.get(f"http://127.0.0.1:{port}/new", timeout=5).text == "/new 0"
        assert is_closed(waiting[0])
        waiting[-1].sendall(b"Host: a\r\nConnection: close\r\n\r\n")
        assert b"/ 0" in everything(waiting[-1])


def test_who_does_not_close_after_the_answer_keeps_nobody_waiting(port: int) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(connected(port, b"GET / HTTP/1.0\r\n\r\n"))
        started = time.monotonic()
        for _ in range(10):
            requests.get(f"http://127.0.0.1:{port}/", timeout=5)
        assert time.monotonic() - started < limit_s(2)


def test_who_does_not_take_the_answers_gets_no_more() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert has_room(ours)
        ours.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(b"x" * 65536)
        assert not has_room(ours)
