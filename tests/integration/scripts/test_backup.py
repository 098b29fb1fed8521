"""A backup, and what comes of it in an empty database."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from bot.queue.inbox import Inbox
from memory import migrations
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from scripts.operating import dumps
from tests.support.exchanges import exchange
from tests.support.forking import run_script
from tests.support.people import Group

_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    return run_script(script, *arguments, env={**kept, **environment})


def contents(url: str) -> dict[str, str]:
    """A digest of every row of every table of ours."""
    with psycopg.connect(url) as connection:
        return {
            name: str(
                connection.execute(
                    f"select md5(coalesce(string_agg(t::text, e'\\n' order by t::text), ''))"
                    f" from {name} t".encode()
                ).fetchone()
            )
            for name in dumps.tables(url)
        }


@pytest.fixture
def used_url(database_url: str) -> str:
    """A database in which people have talked, noted, and wait for an answer."""
    asyncio.run(_use(database_url))
    inbox = Inbox(database_url)
    inbox.enqueue("message:om_1", {}, lock="feishu:oc_1:om_1", received_ms=0)
    inbox.close()
    return database_url


async def _use(url: str) -> None:
    pool = connection_pool(url, size=2)
    await pool.open()
    rpc = PostgresRpc(pool)
    store, alice = MemoryStore(rpc), Group().turn("alice")
    for number in range(3):
        await exchange(store, alice, f"question {number}", "é 中文\t\\.\n", "two")
    await NoteStore(rpc).create(alice, title="Film", body="buy it", tags=["a"])
    await store.close()


def test_every_row_is_in_the_restored_database_and_it_is_as_it_must_be(
    used_url: str, blank_database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "kept.dump"
    saved = run("backup", str(file), DATABASE_URL=used_url)
    assert saved.returncode == 0, saved.stderr
    assert file.stat().st_mode & 0o777 == 0o600

    restored = run("restore", str(file), DATABASE_URL=blank_database_url)
    assert restored.returncode == 0, restored.stderr

    before = dumps.tables(used_url)
    assert {name for name, rows in before.items() if rows} >= {
        "public.agent_chats", "public.agent_messages", "public.agent_notes", "public.agent_turns",
        "feishu_bot.inbox", "feishu_bot.jobs", "bot_private.turn_words", "bot_private.source_key",
    }  # fmt: skip
    assert "bot_private.user_token_seals" not in before
    assert dumps.tables(blank_database_url) == before
    assert contents(blank_database_url) == contents(used_url)
    checked = run("check_memory", DATABASE_URL=blank_database_url, DATA_DIR=str(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_comes_afterwards_gets_numbers_of_its_own(
    used_url: str, blank_database_url: str, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "kept.dump"), DATABASE_URL=used_url)
    run("restore", str(tmp_path / "kept.dump"), DATABASE_URL=blank_database_url)

    inbox = Inbox(blank_database_url)
    inbox.enqueue("message:om_2", {}, lock=None, received_ms=0)
    inbox.close()
    assert dumps.tables(blank_database_url)["feishu_bot.jobs"] == 2
    with psycopg.connect(blank_database_url) as connection:
        resting = "select tgname from pg_trigger where tgenabled <> 'O' and not tgisinternal"
        assert connection.execute(resting).fetchall() == []


def test_a_backup_goes_into_an_empty_database_only(used_url: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.dump"
    run("backup", str(file), DATABASE_URL=used_url)
    before = contents(used_url)

    refused = run("restore", str(file), DATABASE_URL=used_url)

    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "restore: the database is not empty (bot_private.turn_words has rows)"
    )
    assert contents(used_url) == before


def test_a_backup_of_another_version_is_refused(
    used_url: str, blank_database_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(used_url, autocommit=True) as connection:
        connection.execute("insert into feishu_bot.migrations (name) values ('9999_later.sql')")
    run("backup", str(tmp_path / "kept.dump"), DATABASE_URL=used_url)

    refused = run("restore", str(tmp_path / "kept.dump"), DATABASE_URL=blank_database_url)

    assert refused.returncode == 2
    assert "made by another version (9999_later.sql)" in refused.stderr
    there = {name for name, rows in dumps.tables(blank_database_url).items() if rows}
    assert there == {"bot_private.source_key"}, "every database has one"


@pytest.mark.parametrize("is_last", [True, False])
def test_the_backup_of_a_trial_is_restored_if_it_is_of_the_last_version(
    used_url: str, blank_database_url: str, tmp_path: Path, is_last: bool
) -> None:
    with psycopg.connect(used_url, autocommit=True) as connection:
        connection.execute(
            "update feishu_bot.migrations set name = %s where name = 'schema.sql'",
            ["0752_told_since_at_once.sql" if is_last else "0742_given_messages.sql"],
        )
    saved = run("backup", str(tmp_path / "kept.dump"), DATABASE_URL=used_url)
    assert saved.returncode == 0, saved.stderr

    restored = run("restore", str(tmp_path / "kept.dump"), DATABASE_URL=blank_database_url)

    if is_last:
        assert restored.returncode == 0, restored.stderr
        assert contents(blank_database_url) == contents(used_url)
    else:
        assert restored.returncode == 2
        assert "of a trial that lacks 0752_told_since_at_once.sql" in restored.stderr


def test_nothing_is_written_over_and_nothing_is_left_behind(used_url: str, tmp_path: Path) -> None:
    (tmp_path / "kept.dump").write_text("something else", encoding="utf-8")
    refused = run("backup", str(tmp_path / "kept.dump"), DATABASE_URL=used_url)
    nowhere = run("backup", str(tmp_path / "no" / "kept.dump"), DATABASE_URL=used_url)

    assert (refused.returncode, nowhere.returncode) == (2, 2)
    assert "is there already" in refused.stderr
    assert "cannot be written: No such file or directory" in nowhere.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["kept.dump"]


def test_a_file_that_is_no_backup_is_refused(blank_database_url: str, tmp_path: Path) -> None:
    (tmp_path / "kept.dump").write_text("something else", encoding="utf-8")
    refused = run("restore", str(tmp_path / "kept.dump"), DATABASE_URL=blank_database_url)
    assert refused.returncode == 2
    assert "is not a backup" in refused.stderr


def test_a_memory_in_supabase_needs_the_database_of_that_project(tmp_path: Path) -> None:
    keys = {
        "SUPABASE_PUBLISHABLE_KEY": "p",
        "SUPABASE_SECRET_KEY": "s",
        "SUPABASE_JWT_SECRET": "j" * 32,
    }
    where = {"SUPABASE_URL": "https://x.supabase.co", "DATA_DIR": str(tmp_path)}
    refused = run("backup", **keys, **where)
    assert refused.returncode == 2
    assert "set DATABASE_URL to the connection string of that project" in refused.stderr


def test_vectors_are_left_out_where_the_database_has_none(
    used_url: str, blank_database_url: str, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "kept.dump"), DATABASE_URL=used_url)
    migrations.apply_migrations(blank_database_url)
    with psycopg.connect(blank_database_url, autocommit=True) as connection:
        connection.execute("drop table public.agent_embeddings")

    dumps.load(blank_database_url, tmp_path / "kept.dump")

    there = contents(blank_database_url)
    assert there == {k: v for k, v in contents(used_url).items() if k in there}
    assert "public.agent_messages" in there
