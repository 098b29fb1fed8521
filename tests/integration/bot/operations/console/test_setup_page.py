"""Set-up says how long the embedding model really takes, and what is still without a vector."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from sandbox.model.model import ModelServer
from tests.integration.bot.operations.console.conftest import Browser

pytestmark = pytest.mark.anyio


async def test_a_slow_embedding_model_and_its_backlog_are_on_the_page(
    ada: Browser, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into agent_chats (id, user_id, chat_id, root_id)
              values ('feishu:oc_a:om_1', 'ou_1', 'oc_a', 'om_1');
            insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state)
              values ('om_1', 'feishu:oc_a:om_1', 'ou_1', 'ou_1', 'oc_a', 'sent');
            insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role,
                                        content, status)
              values ('feishu:oc_a:om_1', 'ou_1', 'ou_1', 'om_1', 'oc_a', 'user', 'A launch is due',
                      'received')
        """)
    endpoint = ModelServer()
    endpoint.embedding_faults = {"delay_s": 0.6}
    await endpoint.start()
    try:
        monkeypatch.setenv("DATABASE_URL", database_url)
        monkeypatch.setenv("EMBEDDING_MODEL", "small")
        monkeypatch.setenv("EMBEDDING_BASE_URL", endpoint.base_url)
        page = (await asyncio.to_thread(ada.get, "/console/setup/checks")).text
    finally:
        await endpoint.stop()

    assert "1 messages have no vector of small yet" in page
    assert "small answers in 0." in page
    assert "wait for answers that take longer than 0.5 s" in page
