"""The embedded Postgres: nobody else's, shared by processes, and gone with the last of them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from lab.doubles.processes import ROOT, eventually
from memory.backends import embedded, embedded_host
from memory.backends.embedded_host import server_account
from memory.errors import ServerRefused

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="tries it as another user, as only root can")

USES = """
import sys
from pathlib import Path
from memory.backends import embedded
print(embedded.start_embedded(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""

MAKES = """
import sys
from memory.backends import embedded_host
print("ready", flush=True)
sys.stdin.readline()
print(embedded_host._system_user(sys.argv[1]).pw_uid)
"""


class User:
    """A process that uses the server of a folder until it is told to leave."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USES, str(data_dir)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()

    def leave(self) -> str:
        """Ends in order; returns what it complained of."""
        return self.process.communicate()[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that is closed to everybody else, in one that is not."""
    folder = Path(tempfile.mkdtemp(prefix="closed-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data_dir(closed: Path) -> Iterator[Path]:
    folder = closed / "data"
    yield folder
    server = embedded.Server(folder)
    if server.answers():
        server.stop()


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def tried_by_nobody(url: str) -> str:
    """What somebody without any rights is told who tries to become the database's superuser."""
    tried = subprocess.run(
        [embedded_host.installed_program() / "bin" / "psql", url, "-c", "select 1"],
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode, "nobody became superuser"
    return tried.stderr


def open_everything(data_dir: Path) -> None:
    folder = data_dir / "postgres"
    for at in (data_dir.parent, data_dir, folder, folder / embedded_host.SOCKET):
        at.chmod(0o777)


def modes(folder: Path) -> dict[str, int]:
    return {str(at): stat.S_IMODE(at.stat().st_mode) for at in [folder, *folder.parents]}


def long_folder(data_dir: Path) -> Path:
    return data_dir / ("long" * 20) / ("longer" * 20)


def test_no_folder_above_the_data_is_opened(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700)
    before = modes(data_dir)
    user = User(data_dir)
    assert answers(user.url)
    assert modes(data_dir) == before
    user.leave()


@as_root
@pytest.mark.parametrize("place", [lambda at: at, long_folder], ids=["short", "long"])
def test_somebody_else_cannot_reach_the_socket(data_dir: Path, place: object) -> None:
    folder = place(data_dir)  # type: ignore[operator]
    user = User(folder)
    assert answers(user.url)
    assert "Permission denied" in tried_by_nobody(user.url)
    user.leave()


@as_root
def test_somebody_else_is_refused_even_where_every_folder_stands_open(data_dir: Path) -> None:
    user = User(data_dir)
    open_everything(data_dir)
    assert "Peer authentication failed" in tried_by_nobody(user.url)
    user.leave()


@as_root
def test_a_database_that_trusted_everybody_does_so_no_longer(data_dir: Path) -> None:
    User(data_dir).leave()
    (data_dir / "postgres" / "pg_hba.conf").write_text("local all all trust\n")
    user = User(data_dir)
    open_everything(data_dir)
    assert "Peer authentication failed" in tried_by_nobody(user.url)
    user.leave()


def test_what_lies_in_the_data_folder_is_closed_to_others(data_dir: Path) -> None:
    user = User(data_dir)
    found = {at.name: at.lstat().st_mode & 0o077 for at in [data_dir, *data_dir.iterdir()]}
    assert set(found.values()) == {0}, found
    user.leave()


def test_the_server_goes_with_the_last_who_uses_it(data_dir: Path) -> None:
    first, second = User(data_dir), User(data_dir)
    first.leave()
    assert answers(second.url)
    second.leave()
    assert not embedded.Server(data_dir).answers()


def test_a_killed_user_keeps_no_server_alive(data_dir: Path) -> None:
    killed, living = User(data_dir), User(data_dir)
    killed.kill()
    assert answers(living.url)
    living.leave()
    assert not embedded.Server(data_dir).answers()


def test_a_server_that_was_left_behind_is_used_again_and_then_stopped(data_dir: Path) -> None:
    killed = User(data_dir)
    killed.kill()
    assert answers(killed.url)
    user = User(data_dir)
    assert answers(user.url)
    user.leave()
    assert not embedded.Server(data_dir).answers()


@pytest.mark.parametrize("recorded", ["dead", "another program"])
def test_a_killed_server_is_started_again(data_dir: Path, recorded: str) -> None:
    killed = User(data_dir)
    note = data_dir / "postgres" / "postmaster.pid"
    os.kill(int(note.read_text().splitlines()[0]), signal.SIGKILL)
    killed.kill()
    eventually(lambda: not answers(killed.url), what="the server is dead")
    if recorded == "another program":
        lines = note.read_text().splitlines()
        note.write_text("\n".join([str(os.getpid()), *lines[1:], ""]))
    user = User(data_dir)
    assert answers(user.url)
    user.leave()


def test_the_server_is_told_none_of_our_secrets(data_dir: Path) -> None:
    user = User(data_dir, OPENAI_API_KEY="secret-key")
    pid = (data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0]
    environment = Path("/proc") / pid / "environ"
    if environment.exists():
        assert b"secret-key" not in environment.read_bytes()
    user.leave()


def test_the_server_sets_up_little_that_nobody_asks_for(data_dir: Path) -> None:
    user = User(data_dir)
    with psycopg.connect(user.url) as connection:
        [(held,)] = connection.execute(
            "select sum(allocated_size) from pg_shmem_allocations where name <> 'Buffer Blocks' "
            "or name is null"
        )
    user.leave()
    assert held < 7.5e6  # as Postgres comes: 8.9 million


def test_a_link_in_place_of_the_database_is_refused(data_dir: Path, tmp_path: Path) -> None:
    data_dir.mkdir()
    (data_dir / "postgres").symlink_to(tmp_path)
    with pytest.raises(ServerRefused, match="is not a folder"):
        embedded.start_embedded(data_dir)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"notes.txt": "mine"}, "holds no database: move it away"),
        ({"PG_VERSION": "9"}, "is of Postgres 9, and this version of the bot runs Postgres 18"),
        ({"PG_VERSION": "18"}, "is damaged, .* postgresql.auto.conf"),
    ],
)
def test_what_is_no_whole_database_of_ours_is_refused_and_left_as_it_is(
    data_dir: Path, files: dict[str, str], says: str
) -> None:
    folder = data_dir / "postgres"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    os.chown(folder, server_account().uid, server_account().gid)
    with pytest.raises(ServerRefused, match=says):
        embedded.start_embedded(data_dir)
    assert {file.name: file.read_text() for file in folder.iterdir()} == files


def test_a_fresh_database_is_of_the_version_that_is_asked_for(data_dir: Path) -> None:
    user = User(data_dir)
    assert (data_dir / "postgres" / "PG_VERSION").read_text().strip() == embedded._MAJOR
    user.leave()


@pytest.mark.parametrize("locale", ["xx_XX.UTF-8", "C"])
def test_the_terminal_s_language_decides_nothing_about_the_database(
    data_dir: Path, locale: str
) -> None:
    user = User(data_dir, LANG=locale, LC_ALL=locale)
    assert user.url, user.leave()
    with psycopg.connect(user.url) as connection:
        found = connection.execute(r"select lower('ÉCOLE'), '发' ~ '^\w$', 'Z' < 'a'").fetchone()
    user.leave()

    assert found == ("école", True, True)


def test_why_no_database_can_be_made_is_said_in_the_line_with_the_reason() -> None:
    complaint = (
        "could not write to file: No space left on device\n"
        'FATAL:  could not write to file "pg_wal/x": No space left on device\n'
        "child process exited with exit code 1\n"
        "initdb: removing contents of data directory\n"
    )
    assert embedded._reason(complaint).startswith("FATAL:  could not write to file")


@as_root
def test_a_database_of_another_user_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    os.chown(data_dir / "postgres", NOBODY, NOBODY)
    with pytest.raises(ServerRefused, match="belongs to user nobody"):
        embedded.start_embedded(data_dir)


@as_root
def test_a_socket_folder_that_somebody_else_made_is_refused(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short := Path("/tmp") / f"rt-{os.getpid()}"))
    try:
        squatted = short / "feishu-memory-bot-0"
        squatted.mkdir(parents=True)
        os.chown(squatted, NOBODY, NOBODY)
        with pytest.raises(ServerRefused, match="is not a folder of ours alone"):
            embedded.start_embedded(long_folder(data_dir))
    finally:
        shutil.rmtree(short)


@as_root
def test_a_program_that_its_user_cannot_reach_is_copied_not_opened(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = closed.with_name(f"{closed.name}-copies")
    package = embedded_host.installed_program().parent
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, closed / folder.name, symlinks=True)
    program = closed / package.name / embedded_host.installed_program().name
    monkeypatch.setattr(embedded_host, "installed_program", lambda: program)
    monkeypatch.setattr(embedded_host, "_COPIES", copies)
    user = embedded_host.server_account()
    try:
        found = embedded_host.program_folder(user)
        assert found.is_relative_to(copies)
        for name in ("initdb", "postgres"):
            subprocess.run([found / name, "--version"], check=True, **user.options())
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        assert not any(at.stat().st_mode & 0o022 for at in found.parent.rglob("*"))
    finally:
        shutil.rmtree(copies)


@as_root
def test_processes_that_start_together_make_the_same_user() -> None:
    name = f"pgserver-{os.getpid()}"
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["userdel", name], check=False, capture_output=True)
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", MAKES, name],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(4)
        ]
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        uids = [int(process.communicate()[0]) for process in processes]
        assert uids == [pwd.getpwnam(name).pw_uid] * 4
