"""The versions that are measured: this checkout, and another one beside it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lab.doubles.processes import ROOT

_PINNED = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;]+)( *;[^\\\n]*)?", re.MULTILINE)
_PACKAGES = ".packages"


class NotACheckout(Exception):
    """The folder does not hold the bot, or the revision does not exist; the message says which."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with the bot. `label` tells two checkouts of the same version apart."""

    root: Path
    version: str
    label: str

    @property
    def title(self) -> str:
        return f"{self.label} {self.version}"

    @property
    def python(self) -> str:
        """Its own interpreter, or ours if it has none."""
        own = self.root / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def environment(self) -> dict[str, str]:
        """Adds the packages that only this version needs."""
        own = self.root / _PACKAGES
        return {"PYTHONPATH": str(own)} if own.exists() else {}


def checkout_at(root: Path, label: str = "this") -> Checkout:
    """Returns the bot in `root`. Raises `NotACheckout`."""
    root = root.resolve()
    for needed in ("app.py", "gunicorn.conf.py", "scripts/migrate.py"):
        if not (root / needed).exists():
            raise NotACheckout(f"{root} has no {needed}: give a checkout of this repository")
    return Checkout(root, _version(root), label)


@contextmanager
def compared(text: str, repository: Path = ROOT) -> Iterator[Checkout]:
    """Yields the folder of `--against`, or a worktree of that revision, which is removed at the
    end. Raises `NotACheckout`."""
    if Path(text).is_dir():
        yield checkout_at(Path(text), "against")
        return
    commit = _git(repository, "rev-parse", "--verify", "--short=9", f"{text}^{{commit}}")
    folder = repository / ".versions" / commit
    _remove(folder, repository)  # left behind by a run that was killed
    _git(repository, "worktree", "add", "--detach", str(folder), commit)
    try:
        _install(folder)
        yield checkout_at(folder, "against")
    finally:
        _remove(folder, repository)


def _remove(folder: Path, repository: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _git(repository, "worktree", "prune")
    if folder.parent.exists() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()


def _install(folder: Path) -> None:
    """Installs the pinned packages that our interpreter has not, or has in another version."""
    pinned = _PINNED.findall((folder / "requirements.txt").read_text(encoding="utf-8"))
    missing = [
        f"{name}=={wanted}{marker}" for name, wanted, marker in pinned if _installed(name) != wanted
    ]
    if missing:
        print(f"installing {len(missing)} packages of {folder.name}", file=sys.stderr)
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
        _run(sys.executable, *pip, "--target", str(folder / _PACKAGES), *missing)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _git(repository: Path, *arguments: str) -> str:
    return _run("git", "-C", str(repository), *arguments)


def _run(*command: str) -> str:
    """Returns the output. Raises `NotACheckout`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = getattr(exc, "stderr", "") or str(exc)
        raise NotACheckout(f"{' '.join(command[:4])} …: {reason.strip()}") from exc
    return done.stdout.strip()


def _version(root: Path) -> str:
    """Returns git's short name, with + for uncommitted changes; without git the folder's name."""
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return root.name
    return told.stdout.strip() or root.name
