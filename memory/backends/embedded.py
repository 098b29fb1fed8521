"""The embedded Postgres: started in `DATA_DIR` when no `DATABASE_URL` is configured.

Several processes share one server; the last one to leave stops it. Who uses it holds a lock that
the kernel takes back from whoever is killed, so a killed process keeps no server alive, and a
server that was left behind is found and used again. A supervisor has the server as its child.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from memory.backends import embedded_host
from memory.backends.embedded_host import Account, program_folder, server_account
from memory.errors import ServerRefused

# Small enough for a laptop, enough for 64 connections; a page that is not the next one costs little
# more where all are in memory. Everything else is Postgres's default.
_SETTINGS = {
    "shared_buffers": "'16MB'",
    "max_connections": "64",
    "random_page_cost": "1.1",
    "io_method": "'sync'",
    "max_logical_replication_workers": "0",
    "autovacuum_naptime": "'30s'",
    # Less is kept ready for what nobody asks for: 1.7 MB.
    "max_pred_locks_per_transaction": "10",  # of serializable transactions; there are none
    "autovacuum_worker_slots": "3",  # as many as work
    "io_max_concurrency": "4",
}
# What planning needed for a moment goes back to the system: each connection would keep 1.5 MB of it
# (mallopt(3); other C libraries look at neither).
_THRIFT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
_MARK = "# feishu-memory-bot"
_MAJOR = "18"  # of the programs in the wheel
_START_S = 30.0
# The same letters and order on every machine, whatever locales it has and LANG names.
_LOCALE = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=utf8")
# One call for the whole file system instead of one for each of a thousand files.
_SYNC = ("--sync-method=syncfs",) if sys.platform == "linux" else ()
_STOP_S = 10.0
_LOOK_S = 0.02
_PAUSES_S = (0.2, 0.4, 0.8, 1.6)

_shared: dict[Path, Server] = {}


def start_embedded(data_dir: Path) -> str:
    """Starts (or finds) the server below `data_dir` and returns its connection URL.

    Takes 0.1 s, two seconds the first time. The server stops with the last process that called
    this. Raises `ServerRefused`.
    """
    server = Server(data_dir)
    if (running_server := _shared.get(server.data_dir)) is not None:
        return running_server.url
    with server.alone():
        server.join()
        if not server.answers():
            start_server(server)
    _shared[server.data_dir] = server
    atexit.register(server.leave)
    return server.url


def find_embedded(data_dir: Path) -> str:
    """The URL of the server that somebody else starts. Raises `ServerRefused` when nobody does."""
    server = Server(data_dir)
    server.await_answer()
    return server.url


def start_server(server: Server) -> None:
    """Starts a server that is not running, and returns when it takes connections. Tries again while
    the remains of a killed server are still going. Call it while the server is `alone`. Raises
    `ServerRefused`."""
    for pause_s in (*_PAUSES_S, None):
        process = server.prepare().spawn()
        try:
            server.await_answer(process=process)
        except ServerRefused:
            if pause_s is None or process.poll() is None:
                raise
            time.sleep(pause_s)
        else:
            process.returncode = 0  # it is nobody's child: whoever leaves last stops it
            return


class Launch(NamedTuple):
    """How the server is started, as `subprocess.Popen` understands it."""

    arguments: tuple[str, ...]
    folder: Path
    log: Path
    user: Account

    @property
    def environment(self) -> dict[str, str]:
        """Holds no secret of ours."""
        return _THRIFT | server_environment(os.environ)

    def options(self) -> dict[str, object]:
        """Where, and as whom."""
        return {"cwd": self.folder, **self.user.options()}

    def open_log(self) -> IO[bytes]:
        """Where the server writes what an operator may want to know; nobody else reads it."""
        return os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Starts a server that outlives this process."""
        with self.open_log() as out:
            process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]  # noqa: S603
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env=self.environment,
                **self.options(),
            )
        return process


class Server:
    """The server of one data directory, as one process sees it."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        self._using: int | None = None

    @property
    def folder(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def url(self) -> str:
        """The superuser's URL, database `postgres`."""
        from urllib.parse import quote  # a supervisor, which stays for good, asks for no URL

        host = quote(str(embedded_host.socket_folder(self.folder)), safe="/")
        return f"postgresql://postgres:@/postgres?host={host}"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else starts or stops the server meanwhile."""
        lock = open_lock(self.data_dir, ".postgres.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def join(self) -> None:
        """Becomes one of those who use the server."""
        self._using = open_lock(self.data_dir, ".postgres.users")
        fcntl.flock(self._using, fcntl.LOCK_SH)

    def is_last(self) -> bool:
        """Whether nobody else uses it; to be asked while `alone`."""
        users = self._using or -1
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(users, fcntl.LOCK_SH)  # what fails to become exclusive is lost (flock(2))
        return True

    def leave(self) -> None:
        """Stops the server unless others use it. Safe to repeat."""
        if self._using is None:
            return
        if self.data_dir.exists():
            with self.alone():
                if self.is_last():
                    self.stop()
        os.close(self._using)
        self._using = None
        _shared.pop(self.data_dir, None)

    def prepare(self) -> Launch:
        """What starts the server: folders, a database, rules of access. To be called `alone`.
        Raises `ServerRefused`."""
        user = server_account()
        folder = embedded_host.prepare_data_folder(self.data_dir, user)
        try:
            if not _is_database(folder):
                _initialise(folder, user)
            _configure(folder, user)
        except OSError as exc:
            raise ServerRefused(
                f"the database in {folder} is damaged, or there is no room for it "
                f"({exc.strerror}: {Path(str(exc.filename)).name}): make room, or move the folder "
                "away and restore a backup with scripts/restore",
                f"{folder} 中的数据库已损坏，或磁盘空间不足"
                f"（{exc.strerror}：{Path(str(exc.filename)).name}）：请清理空间，"
                "或移走该文件夹，再用 scripts/restore 恢复备份",
            ) from exc
        self._forget_dead()
        command = (
            str(program_folder(user) / "postgres"),
            *("-D", embedded_host.data_directory_argument(folder, user)),
            *("-c", "listen_addresses=", "-c", "unix_socket_directories=."),
            *("-c", "unix_socket_permissions=0700"),
            # Errors quote statements and rows, which hold what people said; who asked is told them.
            *("-c", "log_min_messages=log", "-c", "log_checkpoints=off"),
            *("-c", "log_min_error_statement=panic", "-c", "log_error_verbosity=terse"),
        )
        return Launch(command, folder, self.data_dir / "postgres.log", user)

    def answers(self) -> bool:
        """Whether it is running and takes connections; one on its way in or out is waited for."""
        while (state := self._state()) in ("starting", "stopping"):
            time.sleep(_LOOK_S)
        return state in ("ready", "standby")

    @property
    def is_ready(self) -> bool:
        return self._state() == "ready"

    def await_answer(self, process: subprocess.Popen[bytes] | None = None) -> None:
        """Returns when it takes connections. Raises `ServerRefused` after `_START_S`, or when
        `process`, which should be the server, has ended."""
        deadline = time.monotonic() + _START_S
        while not self.is_ready:
            if time.monotonic() > deadline or (process and process.poll() is not None):
                raise ServerRefused(
                    f"the database in {self.folder} does not start: see "
                    f"{self.data_dir / 'postgres.log'}",
                    f"{self.folder} 中的数据库无法启动：请查看 {self.data_dir / 'postgres.log'}",
                )
            time.sleep(_LOOK_S)

    def stop(self) -> None:
        """Ends the running server, whoever started it; connections are closed."""
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if not self._listens():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self._pid_file_line(0)), number)
            deadline = time.monotonic() + _STOP_S
            while self._is_there() and time.monotonic() < deadline:
                time.sleep(_LOOK_S)

    def _is_there(self) -> bool:
        """Its socket goes a moment before its process id does."""
        return (self.folder / "postmaster.pid").exists() or self._listens()

    def _forget_dead(self) -> None:
        """A server that was killed leaves its process id, which may be another program's by now,
        or one that nobody has buried: Postgres would take either for itself and refuse to start.
        Backends that are left of it still keep a new one off, by the memory they share."""
        stat = Path("/proc") / (self._pid_file_line(0) or "none") / "stat"
        with contextlib.suppress(OSError):
            alive = (
                "(postgres) Z" not in (process_stat := stat.read_text())
                and "(postgres)" in process_stat
            )
            if alive:
                return
        for file_name in ("postmaster.pid", f"{embedded_host.SOCKET}.lock"):
            (self.folder / file_name).unlink(missing_ok=True)

    def _state(self) -> str:
        """ "" when it does not run, else as Postgres names it: starting, ready, stopping."""
        return self._pid_file_line(7) or "starting" if self._listens() else ""

    def _pid_file_line(self, line: int) -> str:
        with contextlib.suppress(OSError, IndexError):
            return (self.folder / "postmaster.pid").read_text().splitlines()[line].strip()
        return ""

    def _listens(self) -> bool:
        """The socket tells; a process id may be somebody else's by now."""
        at = embedded_host.socket_folder(self.folder) / embedded_host.SOCKET
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(at))
            except OSError:
                return False
        return True


def open_lock(data_dir: Path, name: str) -> int:
    """A file of `data_dir` to be locked, made with its folder. Raises `ServerRefused`."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(data_dir / name, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise ServerRefused(
            f"DATA_DIR is {str(data_dir)!r}: nothing can be written there ({exc.strerror}). "
            "Choose another folder",
            f"DATA_DIR 是 {str(data_dir)!r}，无法写入（{exc.strerror}）：请换一个文件夹",
        ) from exc


def server_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What of `variables` the server is told: where programs are and the time zone. A LANG that
    the machine lacks, as ssh brings it along, would make `initdb` fail."""
    return {name: variables[name] for name in ("PATH", "TZ") if name in variables} | {"LC_ALL": "C"}


def _is_database(folder: Path) -> bool:
    """Whether it holds one; False: nothing. Raises `ServerRefused` for what is neither, or is of
    another version."""
    version = folder / "PG_VERSION"
    if not version.exists():
        if any(folder.iterdir()):
            raise ServerRefused(
                f"{folder} is not empty and holds no database: move it away, or set another "
                "DATA_DIR",
                f"{folder} 不是空的，里面又没有数据库：请把它移走，或换一个 DATA_DIR",
            )
        return False
    if (made_by := version.read_text(encoding="utf-8").strip()) != _MAJOR:
        raise ServerRefused(
            f"the database in {folder} is of Postgres {made_by}, and this version of the bot runs "
            f"Postgres {_MAJOR}: make a backup with the version that made it (scripts/backup), "
            "move the folder away, and scripts/restore it with this one",
            f"{folder} 中的数据库是 Postgres {made_by}，而当前版本使用 Postgres {_MAJOR}："
            "请用创建它的版本备份（scripts/backup），移走该文件夹，再用当前版本恢复（scripts/restore）",
        )
    return True


def _initialise(folder: Path, user: Account) -> None:
    """A new database, made beside its place, so that one half made is never taken for a whole."""
    import shutil  # needed once in a database's life

    building = folder.with_name("postgres.new")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    if user.separate:
        os.chown(building, user.uid, user.gid)
    where = embedded_host.data_directory_argument(building, user)
    command = [program_folder(user) / "initdb", "--auth=peer", *_LOCALE, "-U", "postgres"]
    result = subprocess.run(  # noqa: S603
        [*command, *_SYNC, "-D", where, "--no-instructions"],
        cwd=building,
        env=server_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
        **user.options(),  # type: ignore[call-overload]
    )
    if result.returncode:
        reason = _reason(result.stderr)
        raise ServerRefused(
            f"no database can be made in {folder}: {reason}",
            f"无法在 {folder} 中创建数据库：{reason}",
        )
    building.rename(folder)


def _reason(complaint: str) -> str:
    """The line that says why, of what `initdb` complains of; it tidies up after it."""
    lines = complaint.strip().splitlines() or ["no reason given"]
    return next((line for line in lines if re.search(r"error:|FATAL:|PANIC:", line)), lines[-1])


def _configure(folder: Path, user: Account) -> None:
    """Settings once; who may connect, each time: nobody but the two users of this machine."""
    settings = folder / "postgresql.auto.conf"
    text = settings.read_text(encoding="utf-8")
    if _MARK not in text:
        lines = [f"{name} = {value}" for name, value in _SETTINGS.items()]
        _write(settings, "\n".join([text.rstrip(), _MARK, *lines, ""]), user)
    names = sorted({user.name, "root"} if user.separate else {user.name})
    _write(folder / "pg_hba.conf", f"{_MARK}\nlocal all all peer map=bot\n", user)
    _write(folder / "pg_ident.conf", "".join(f'bot "{name}" all\n' for name in names), user)


def _write(file: Path, text: str, user: Account) -> None:
    """Replaces a file of the server's folder; never through a link that somebody put there."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    out = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(out, "w", encoding="utf-8") as writing:
        writing.write(text)
        os.fchown(out, user.uid, user.gid)
    fresh.replace(file)
