"""When a request is whole: the same for any pieces in which it comes."""

from __future__ import annotations

import itertools

from gunicorn import http
from gunicorn.config import Config
from hypothesis import given
from hypothesis import strategies as st

from bot.intake.framing import MAX_HEAD_BYTES, Arrival, plain_parts
from tests.support.rows import every_row

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n"
WHOLE = [GET, POST, CHUNKS + b"\r\n", CHUNKS + b"Trailer: x\r\nAnother: y\r\n\r\n"]
HEAD = b"POST / HTTP/1.1\r\n"
ODD = {
    "a length that is no number": HEAD + b"Content-Length: -5\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a length and chunks": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "more than is taken": HEAD + b"Content-Length: 1001\r\n\r\n",
    "chunks of more than is taken": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n",
    "a chunk without size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n\r\n",
    "a chunk's line without end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
    "a head without end": HEAD + b"X: " + b"a" * MAX_HEAD_BYTES,
}


def arrival() -> Arrival:
    return Arrival(most_bytes=1000)


@given(
    requests=st.lists(st.sampled_from(WHOLE), min_size=1, max_size=4), cuts=st.sets(st.integers(1))
)
def test_requests_in_a_row_come_out_as_they_were_sent_whatever_their_pieces(
    requests: list[bytes], cuts: set[int]
) -> None:
    sent = b"".join(requests)
    arriving, found = arrival(), []
    at = sorted({cut % len(sent) for cut in cuts} | {0, len(sent)})
    for start, end in itertools.pairwise(at):
        arriving.add(sent[start:end])
        while arriving.state == "whole":
            found.append(arriving.take())

    assert found == requests
    assert not arriving.has_begun


@every_row("request_", WHOLE)
def test_a_request_is_not_whole_before_its_last_byte(request_: bytes) -> None:
    arriving = arrival()
    for byte in request_[:-1]:
        arriving.add(bytes([byte]))
        assert arriving.state == "coming"
    arriving.add(request_[-1:])
    assert arriving.state == "whole"


@every_row("what", ODD)
def test_what_the_server_will_refuse_is_not_waited_for(what: str) -> None:
    arriving = arrival()
    arriving.add(ODD[what])

    assert arriving.state == "odd"
    assert arriving.take() == ODD[what]


def test_who_asks_before_sending_the_body_is_noticed() -> None:
    arriving = arrival()
    arriving.add(HEAD + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")

    assert (arriving.state, arriving.expects_go_ahead) == ("coming", True)


@given(junk=st.binary(max_size=300))
def test_no_bytes_break_it(junk: bytes) -> None:
    arriving = arrival()
    arriving.add(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + junk)
    while arriving.state != "coming":
        assert arriving.take()


def request_of(*lines: str, body: bytes = b"{}") -> bytes:
    head = "\r\n".join(("POST /webhook/event HTTP/1.1", *lines))
    return f"{head}\r\n\r\n".encode("latin-1") + body


@every_row("more", [(), ("Connection: keep-alive",), ("X-Lark-Signature:  ab c \t",)])
def test_a_plain_request_reads_as_the_parser_of_the_server_reads_it(more: tuple[str, ...]) -> None:
    request = request_of("Host: localhost", "Content-Length: 2", *more)
    read = next(http.get_parser(Config(), [request], ("127.0.0.1", 1)))
    parts = plain_parts(request)
    assert parts is not None
    fields, body = parts
    assert body == read.body.read() == b"{}"
    told = {name: value for name, value in read.headers if name != "CONNECTION"}
    assert fields == told


@every_row(
    "lines",
    [
        ("Content-Length: 3",),
        ("Content-Length: 2", "Content-Length: 2"),
        ("Content-Length : 2",),
        ("Content-Length: +2",),
        (),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Content-Length: 2", "Connection: close"),
        ("Content-Length: 2", "Connection: upgrade"),
        ("Content-Length: 2", "Expect: 100-continue"),
        ("Content-Length: 2", "X-Odd: a\x00b"),
        ("Content-Length: 2", "X-Odd: a\nb: c"),
        ("Content-Length: 2", " folded"),
        ("Content-Length: 2", "X_Under: score"),
        ("Content-Length: 2", "X-Other: \xe9"),
        ("Content-Length: 2", "no colon"),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(lines: tuple[str, ...]) -> None:
    assert plain_parts(request_of(*lines)) is None
