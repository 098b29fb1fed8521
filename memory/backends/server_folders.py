"""Where the embedded Postgres keeps its data and its socket, closed to everybody else.

`DATA_DIR/postgres` belongs to the server's user alone and holds the socket too. On Linux the
server of root is started in that folder and knows it as `/proc/self/cwd`: so its user needs no way
through the folders above, and none of them is opened.
"""

from __future__ import annotations

import os
import pwd
import stat
import zlib
from pathlib import Path

from memory.backends.server_account import Account
from memory.errors import ServerRefused

SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET = 100  # bytes; the kernels take 103 and 107
_OWN_NAME = "feishu-memory-bot"


def prepare(data_dir: Path, user: Account) -> Path:
    """The data folder, made or checked; `data_dir` has to be resolved. Raises `ServerRefused`."""
    folder = data_dir / "postgres"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_writers(data_dir)
        folder.mkdir(mode=0o700, exist_ok=True)
        _take(folder, user)
    except OSError as exc:
        raise ServerRefused(
            f"DATA_DIR {data_dir} cannot be used ({exc.strerror}): choose a folder of your own"
        ) from exc
    return folder


def directory(folder: Path, user: Account) -> str:
    """What the server, started in `folder`, is told as its data directory."""
    own_way = user.separate and Path("/proc/self/cwd").is_dir()
    return "/proc/self/cwd" if own_way else str(folder)


def socket_folder(folder: Path) -> Path:
    """How clients name the folder of the socket: itself, or a short link where it is too long."""
    if len(os.fsencode(folder / SOCKET)) <= _LONGEST_SOCKET:
        return folder
    links = _own_folder()
    link = links / _short(os.fsencode(folder))
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
            f"DATA_DIR {data_dir} belongs to {_name(status.st_uid)} and others may write there: "
            "choose a folder of your own"
        )
    data_dir.chmod(stat.S_IMODE(status.st_mode) & ~0o022)


def _take(folder: Path, user: Account) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise ServerRefused(f"{folder} is not a folder: move it away, or choose another DATA_DIR")
    if status.st_uid == os.geteuid() and user.separate and not any(folder.iterdir()):
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    elif status.st_uid != user.uid:
        raise ServerRefused(
            f"{folder} belongs to {_name(status.st_uid)} and the database runs as {user.name}: "
            f"start the bot as who made it, or `chown -R {user.name} {folder}`"
        )
    folder.chmod(0o700)


def _short(name: bytes) -> str:
    """16 characters; the link that bears them is looked at before it is used."""
    return f"{zlib.crc32(name):08x}{zlib.adler32(name):08x}"


def _own_folder() -> Path:
    """A short folder that is ours alone, where nobody else can have left anything."""
    folder = _runtime() / f"{_OWN_NAME}-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ServerRefused(
            f"{folder} is not a folder of ours alone (owner {_name(status.st_uid)}), so the "
            "database's socket is not safe there: remove it, or choose a shorter DATA_DIR"
        )
    return folder


def _runtime() -> Path:
    """Where only the user or root may make folders, if there is such a place."""
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run" if os.geteuid() == 0 else ""):
        if place and len(place) < _LONGEST_SOCKET // 3 and os.access(place, os.W_OK):
            return Path(place)
    return Path("/tmp")  # noqa: S108 - checked by who makes a folder there


def _name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
