"""How the benchmark tells the bot's parts apart and knows when a reply is there."""

from __future__ import annotations

import asyncio
import json

import pytest

from lab.bench.accounting import part_of, serves_client
from lab.doubles.minimal_feishu import StandIn
from sandbox.model.model_http import read_request
from tests.support.rows import every_row


@every_row(
    ("command", "part"),
    [
        ("python -m gunicorn -c gunicorn.conf.py app:create_app()", "web"),
        ("/app/.venv/bin/python /app/.venv/bin/gunicorn -c gunicorn.conf.py", "web"),
        ("python -m bot.worker", "worker"),
        ("python -m bot.process.programs", "worker"),
        ("python -m bot.process.supervisor -c gunicorn.conf.py app:create_app()", "supervisor"),
        ("/wheel/pginstall18/bin/postgres -D /data/postgres -c listen_addresses=", "Postgres"),
        ("postgres: checkpointer", "Postgres"),
        ("postgres: postgres gunicorn [local] idle", "Postgres"),
        ("python -m bot.operations.startup_checks", "other"),
        ("", "other"),
    ],
)
def test_a_process_belongs_to_the_part_its_command_names(command: str, part: str) -> None:
    assert part_of(command.split()) == part


@every_row(
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
