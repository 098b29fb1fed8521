"""`scripts/memory verify`: from a deletion to its receipt, and from the receipt back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest

from lab.doubles import lite
from memory.backends.embedded import start_embedded
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.migrations import apply_migrations
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support import postgres
from tests.support.forking import run_script
from tests.support.people import Group

pytestmark = pytest.mark.anyio

TEXT = "the gym code is Porto 4471"
_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")


class Desk:
    """A database, the scripts on it, and a folder for files. `settings` say where the memory is."""

    def __init__(
        self, rpc: PostgresRpc, url: str, folder: Path, settings: Mapping[str, str]
    ) -> None:
        self.rpc, self.memory, self.notes = rpc, MemoryStore(rpc), NoteStore(rpc)
        self.url, self.folder = url, folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        self._env = {**kept, **settings, "DATA_DIR": str(folder / "data")}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_script("memory", *arguments, env=self._env)

    def file(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(text)
        return str(file)

    def change(self, file: str, old: str, new: str) -> str:
        text = Path(file).read_text()
        assert old in text
        return self.file("changed.json", text.replace(old, new, 1))

    async def retract(self, group: Group) -> tuple[str, str]:
        """Alice says the text and takes it back. Returns files of her copy and of the text."""
        alice = group.turn()
        await self.memory.begin_turn(alice, turn_id=group.message("said"), content=TEXT)
        await self.memory.take_back(group.message("said"), alice.chat_id)
        done = self.run("receipts", "--person", group.person("alice"), "--tenant", "tenant")
        assert done.returncode == 0, done.stderr
        return self.file("copy.json", done.stdout), self.file("said.txt", f"{TEXT}\n")


@contextmanager
def supabase(url: str, socket_folder: str) -> Iterator[dict[str, str]]:
    """Settings of a memory behind Supabase's API."""
    if reason := lite.missing():
        pytest.skip(reason)
    with lite.run(url, socket_folder=socket_folder) as server:
        yield {
            "DATABASE_URL": url,
            "SUPABASE_URL": server.url,
            "SUPABASE_PUBLISHABLE_KEY": server.publishable_key,
            "SUPABASE_SECRET_KEY": server.secret_key,
            "SUPABASE_JWT_SECRET": server.jwt_secret,
        }


@asynccontextmanager
async def desk_at(url: str, folder: Path, settings: Mapping[str, str]) -> AsyncIterator[Desk]:
    pool = connection_pool(url, size=2)
    await pool.open()
    rpc = PostgresRpc(pool)
    yield Desk(rpc, url, folder, settings)
    await rpc.close()


@pytest.fixture
async def desk(database_url: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(database_url, tmp_path, {"DATABASE_URL": database_url}) as made:
        yield made


@pytest.mark.parametrize("kind", ["embedded", "supabase"])
async def test_a_deletion_is_verified_wherever_the_memory_is(
    kind: str, database_url: str, postgres_server: postgres.Server, tmp_path: Path
) -> None:
    url, settings = database_url, dict[str, str]()
    with ExitStack() as stack:
        if kind == "embedded":
            url = start_embedded(tmp_path / "data")
            apply_migrations(url)
        else:
            settings = stack.enter_context(supabase(url, postgres_server.socket_folder))
        async with desk_at(url, tmp_path, settings) as desk:
            group = Group()
            copy, said = await desk.retract(group)
            done = desk.run("verify", copy, "--text", said)
            assert (done.returncode, "nothing survived" in done.stdout) == (0, True), done.stdout
            await desk.notes.create(group.turn("bob"), title="Gym", body=TEXT, turn_id="")
            done = desk.run("verify", copy, "--text", said)
            assert (done.returncode, "public.agent_notes.body" in done.stdout) == (1, True)


async def test_another_database_than_the_memorys_is_refused(
    desk: Desk, postgres_server: postgres.Server, migrated_template: str
) -> None:
    copy, said = await desk.retract(Group())
    with (
        postgres_server.fresh_database(template=migrated_template) as other,
        supabase(desk.url, postgres_server.socket_folder) as settings,
    ):
        mixed = Desk(desk.rpc, desk.url, desk.folder, {**settings, "DATABASE_URL": other})
        done = mixed.run("verify", copy, "--text", said)
    assert (done.returncode, "DATABASE_URL is another database" in done.stdout) == (1, True)


async def test_a_deletion_that_holds_is_verified_and_a_survivor_named(desk: Desk) -> None:
    group = Group()
    copy, said = await desk.retract(group)

    done = desk.run("verify", copy, "--text", said)
    assert (done.returncode, "nothing survived" in done.stdout) == (0, True), done.stdout
    assert "the receipt names this text" in done.stdout

    await desk.notes.create(group.turn("bob"), title="Gym", body=TEXT, turn_id="")
    done = desk.run("verify", copy, "--text", said)
    assert done.returncode == 1
    assert "SURVIVED: public.agent_notes.body" in done.stdout


async def test_a_colleague_who_said_it_too_is_reported_and_is_no_survivor(desk: Desk) -> None:
    group = Group()
    copy, said = await desk.retract(group)
    bob = group.turn("bob", thread="other")
    await desk.memory.begin_turn(bob, turn_id=group.message("bob"), content=f"Yes: {TEXT}!")
    await desk.notes.create(bob, title="Gym", body=TEXT, turn_id=group.message("bob"))

    done = desk.run("verify", copy, "--text", said)

    assert done.returncode == 0
    assert "same words, another source: public.agent_messages.content" in done.stdout
    assert "same words, another source: public.agent_notes.body" in done.stdout


async def test_words_in_a_file_or_a_log_survived(desk: Desk) -> None:
    copy, said = await desk.retract(Group())
    log = desk.file("bot.log", f"asked: {TEXT}\n")
    (desk.folder / "data" / "left.txt").write_text(TEXT)

    done = desk.run("verify", copy, "--text", said, "--log", log)

    assert done.returncode == 1
    assert f"SURVIVED: {log} (line 1)" in done.stdout
    assert "left.txt (line 1)" in done.stdout


async def test_another_text_a_changed_receipt_and_a_cut_chain_are_refused(desk: Desk) -> None:
    copy, said = await desk.retract(Group())
    other = desk.file("other.txt", "the gym code is Porto 4472")
    assert "refused: it does not name this text" in desk.run("verify", copy, "--text", other).stdout

    changed = desk.change(copy, '\\"deleted\\":1', '\\"deleted\\":2')
    done = desk.run("verify", changed, "--text", said)
    assert (done.returncode, "refused: its signature is wrong" in done.stdout) == (1, True)

    with psycopg.connect(desk.url, autocommit=True) as connection:
        connection.execute("delete from agent_receipts")
    done = desk.run("verify", copy, "--text", said)
    assert (done.returncode, "ends before the anchored" in done.stdout) == (1, True)


async def test_the_chain_and_the_key_that_verifies_it_are_published(desk: Desk) -> None:
    await desk.retract(Group())
    assert len(desk.run("receipts").stdout.splitlines()) == 1
    assert len(bytes.fromhex(desk.run("receipt-key").stdout.strip())) == 32


async def test_an_edited_message_leaves_a_receipt_of_what_it_said_before(desk: Desk) -> None:
    group = Group()
    alice, said = group.turn(), group.message("said")
    await desk.memory.begin_turn(alice, turn_id=said, content=TEXT)
    now = "the gym code is Porto 4472"
    await desk.memory.replace_message(
        said, alice.chat_id, question=now, raw_words=now, by_turn="om_noticed"
    )
    done = desk.run("receipts", "--person", group.person("alice"), "--tenant", "tenant")
    copy, before = desk.file("copy.json", done.stdout), desk.file("before.txt", TEXT)

    done = desk.run("verify", copy, "--text", before)

    assert (done.returncode, "the receipt names this text" in done.stdout) == (0, True), done.stdout
    assert "nothing survived" in done.stdout
