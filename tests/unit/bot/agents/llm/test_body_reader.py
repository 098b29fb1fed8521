"""Server-sent events, however their bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.llm.http_responses import BodyReader, json_values
from tests.support.rows import every_row


def read(*received: bytes) -> list[bytes]:
    reader = BodyReader()
    found = [data for piece in received for data in reader.feed(piece)]
    return [*found, *reader.close()]


@every_row("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_they_like(end: bytes) -> None:
    assert read(b"data: a" + end * 2 + b"data:b" + end * 2) == [b"a", b"b"]


def test_comments_and_other_fields_say_nothing() -> None:
    stream = b": OPENROUTER PROCESSING\n\nevent: x\nid: 7\nretry: 5\ndata: a\n\n: keep-alive\n\n"
    assert read(stream) == [b"a"]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    mark = b"\xef\xbb\xbf"
    assert read(mark + b"data: a\n\n") == [b"a"]
    assert read(mark[:1], mark[1:], b"data: a\n\n") == [b"a"]


def test_lines_of_one_event_belong_together() -> None:
    assert read(b'data: {"a":\ndata: 1}\n\n') == [b'{"a":\n1}']


def test_a_last_event_without_an_empty_line_counts() -> None:
    assert read(b"data: a\n\ndata: b") == [b"a", b"b"]


def test_only_one_space_is_taken_off() -> None:
    assert read(b"data:  a\n\ndata: \n\n") == [b" a", b""]


@every_row(
    ("body", "documents"),
    [
        (b'{"a": 1}', [b'{"a": 1}']),
        (b'\n  {\n "a": 1\n}\n', [b'  {\n "a": 1\n}']),
        (b'{"a": 1}\n\ndata: [DONE]\n\n', [b'{"a": 1}', b"[DONE]"]),
        (b': wait\n\n: wait\n\n{"a": 1}', [b'{"a": 1}']),
        (b'{"a": 1}\n{"a": 2}\n', [b'{"a": 1}\n{"a": 2}']),
        (b"<html>\n</html>", [b"<html>\n</html>"]),
        (b"data: a\n\nstray\n\ndata: b\n\n", [b"a", b"b"]),
        (b"", []),
    ],
)
def test_what_stands_outside_of_events_counts_where_it_comes_first(
    body: bytes, documents: list[bytes]
) -> None:
    assert read(body) == documents
    assert read(*(bytes([one]) for one in body)) == documents


def test_values_stand_one_after_the_other() -> None:
    assert json_values(b'{"a": 1}\n {"a": 2}[]') == [{"a": 1}, {"a": 2}, []]
    for broken in ("", "{}x", '{"a"', "<html>"):
        with pytest.raises(ValueError):
            json_values(broken)


@given(
    # not the field's own name: some proxies add a second one, and it is dropped
    st.lists(
        st.binary(max_size=12).filter(
            lambda data: not set(b"\r\n") & set(data) and not data.lstrip().startswith(b"data:")
        ),
        max_size=6,
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.randoms(use_true_random=False),
)
def test_it_does_not_matter_where_the_bytes_are_divided(datas, end, dice) -> None:
    stream = b"".join(b"data: " + data + end + end for data in datas)
    cuts = sorted(dice.randrange(len(stream) + 1) for _ in range(8))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert read(*pieces) == datas
