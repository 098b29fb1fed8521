"""How the benchmark tells the bot's parts apart, reads the wire and knows when a reply is there."""

from __future__ import annotations

import asyncio
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmark.process_accounting import part_of, serves_client
from lab.benchmark.wire import Counts, Messages, WireReader
from lab.doubles.minimal_feishu import StandIn
from sandbox.model.model_http import read_request


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("python -m gunicorn -c gunicorn.conf.py app:create_app()", "web"),
        ("/app/.venv/bin/python /app/.venv/bin/gunicorn -c gunicorn.conf.py", "web"),
        ("python -m bot.worker", "worker"),
        ("python -m bot.process.prefork", "worker"),
        ("python -m bot.process -c gunicorn.conf.py app:create_app()", "supervisor"),
        ("/wheel/pginstall18/bin/postgres -D /data/postgres -c listen_addresses=", "Postgres"),
        ("postgres: checkpointer", "Postgres"),
        ("postgres: postgres gunicorn [local] idle", "Postgres"),
        ("python -m bot.intake.preflight", "other"),
        ("", "other"),
    ],
)
def test_a_process_belongs_to_the_part_its_command_names(command: str, part: str) -> None:
    assert part_of(command.split()) == part


@pytest.mark.parametrize(
    ("title", "serves"),
    [
        ("postgres: postgres bench [local] idle", True),
        ("postgres: bot postgres 127.0.0.1(43210) SELECT", True),
        ("postgres: autovacuum launcher", False),
        ("postgres: background writer", False),
        ("/wheel/bin/postgres -D /data/postgres", False),
    ],
)
def test_only_processes_that_serve_a_connection_are_connections(title: str, serves: bool) -> None:
    assert serves_client(title.split()) is serves


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


@given(
    st.lists(st.tuples(st.sampled_from([b"Q", b"P", b"E", b"S"]), st.binary(max_size=40))),
    st.lists(st.integers(1, 30), min_size=1),
)
def test_messages_are_the_same_in_pieces_of_any_size(
    sent: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    stream = message(b"", b"startup") + b"".join(message(*one) for one in sent)
    messages, found, number = Messages(of_client=True), [], 0
    while stream:
        size = sizes[number % len(sizes)]
        found += messages.fed(stream[:size])
        stream, number = stream[size:], number + 1
    assert found == [(0, b"startup"), *((kind[0], body) for kind, body in sent)]


def opened() -> WireReader:
    conversation = WireReader(Counts())
    conversation.asked(0)
    for kind, body in ((b"R", b""), (b"S", b"TimeZone"), (b"Z", b"I")):
        conversation.answered(kind[0], body)
    return conversation


def test_a_notification_that_nobody_asked_for_makes_no_round_trip() -> None:
    conversation = opened()
    conversation.asked(ord("Q"))
    conversation.answered(ord("A"), b"")
    conversation.asked(ord("Q"))
    assert conversation.counts == Counts(statements=2, transactions=0, round_trips=1)


def test_leaving_is_not_counted() -> None:
    conversation = opened()
    conversation.asked(ord("X"))
    assert conversation.counts == Counts()


pytestmark = pytest.mark.anyio
_SETTINGS = ("PATCH", "7/settings")
_TEXT = ("PUT", "7/elements/answer/content")
_LAST = ("PUT", "7")
_BATCH = ("POST", "7/batch_update")


async def ask(platform: StandIn, method: str, path: str, body: object) -> None:
    text = json.dumps(body).encode()
    reader = asyncio.StreamReader()
    head = f"{method} /open-apis/{path} HTTP/1.1\r\nContent-Length: {len(text)}\r\n\r\n"
    reader.feed_data(head.encode() + text)
    platform._answer(await read_request(reader))


async def test_an_ordinary_card_is_the_reply() -> None:
    platform = StandIn()
    reply = platform.expect("om_1")
    content = json.dumps({"schema": "2.0", "body": {}})
    await ask(platform, "POST", "im/v1/messages/om_1/reply", {"content": content})
    assert reply.done()


@pytest.mark.parametrize("last", [_LAST, _BATCH])
async def test_a_card_that_is_written_on_is_the_reply_once_its_final_text_is_in(
    last: tuple[str, str],
) -> None:
    platform = StandIn()
    reply = platform.expect("om_1")
    content = json.dumps({"type": "card", "data": {"card_id": "7"}})
    await ask(platform, "POST", "im/v1/messages/om_1/reply", {"content": content})
    for method, path in (_TEXT, _SETTINGS):
        await ask(platform, method, f"cardkit/v1/cards/{path}", {})
    assert not reply.done()
    await ask(platform, last[0], f"cardkit/v1/cards/{last[1]}", {})
    assert reply.done()
    assert not platform.unknown
