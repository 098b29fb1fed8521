"""A Postgres of one's own whose owner is no superuser: migrated, then used like any other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from lab.doubles.processes import free_port, running_bot, running_model, running_platform
from tests.acceptance.conftest import World, prompt_of
from tests.support.postgres import start_server, statements_for_a_superuser

pytestmark = pytest.mark.slow


def test_an_owner_without_any_privilege_is_enough_once_the_roles_are_there(tmp_path: Path) -> None:
    server = start_server()
    server.execute("create role plain login nosuperuser nocreaterole nobypassrls")
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    with (
        server.fresh_database(owner="plain") as url,
        running_model(tmp_path) as model,
        running_platform(tmp_path, hook, "--retry-scale", "0.02") as platform,
    ):
        assert len(statements_for_a_superuser(server, url)) == 1
        environment = {
            "DATABASE_URL": url,
            "FEISHU_DOMAIN": platform.url,
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": model.base_url,
            "STREAM_REPLIES": "false",
        }
        with (
            running_bot(tmp_path, port, environment) as bot,
            closing(World(bot, platform, model, url).in_a_new_group()) as world,
        ):
            first, _ = world.ask("Alice", "my cat is called Tom")
            world.settled(first)
            second, _ = world.ask("Alice", "what is it called?", reply_to=first)
            world.settled(second)

            asked = prompt_of(model.requests()[-1])
            assert any("my cat is called Tom" in text for _, text in asked)
            assert "job.failed" not in bot.workers[0].output()
        with psycopg.connect(url) as connection:
            query = "select rolsuper from pg_roles where rolname = current_user"
            assert connection.execute(query).fetchone() == (False,)
