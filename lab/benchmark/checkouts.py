"""Which copy of the repository is measured: this one, or another version beside it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


class NotACheckout(Exception):
    """The folder does not hold the bot; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with the bot; `label` tells two of the same version apart."""

    root: Path
    version: str
    label: str

    @property
    def title(self) -> str:
        """What the tables call it."""
        return f"{self.label} {self.version}"

    @property
    def python(self) -> str:
        """Its own interpreter, or ours where it has none."""
        own = self.root / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable


def checkout_at(root: Path, label: str = "this") -> Checkout:
    """The bot in `root`. Raises `NotACheckout`."""
    root = root.resolve()
    for needed in ("app.py", "gunicorn.conf.py", "scripts/migrate.py"):
        if not (root / needed).exists():
            raise NotACheckout(f"{root} has no {needed}: give a checkout of this repository")
    return Checkout(root, _version(root), label)


def compared_checkout(text: str) -> Checkout:
    """The folder of a command's --against, or a revision of this repository."""
    try:
        if Path(text).is_dir():
            return checkout_at(Path(text), "against")
        return checkout_at(check_out(text, ROOT), "against")
    except NotACheckout as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def check_out(revision: str, repository: Path) -> Path:
    """A worktree of the revision below `.versions`, which stays there for the next time; with an
    interpreter of its own where it needs other packages. Raises `NotACheckout`."""
    commit = _git(repository, "rev-parse", "--verify", "--short=9", f"{revision}^{{commit}}")
    folder = repository / ".versions" / commit
    if not folder.exists():
        _git(repository, "worktree", "add", "--detach", str(folder), commit)
    needed = folder / "requirements.txt"
    if needed.read_bytes() != (repository / "requirements.txt").read_bytes():
        _install(needed, folder / ".venv")
    return folder


def _install(requirements: Path, environment: Path) -> None:
    done = environment / ".installed"
    if done.exists():
        return
    print(f"installing the packages of {requirements.parent.name} (minutes)", file=sys.stderr)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r")
    _run(sys.executable, "-m", "venv", str(environment))
    _run(str(environment / "bin" / "python"), *pip, str(requirements))
    done.touch()


def _git(repository: Path, *arguments: str) -> str:
    return _run("git", "-C", str(repository), *arguments)


def _run(*command: str) -> str:
    """What it says. Raises `NotACheckout`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = getattr(exc, "stderr", "") or str(exc)
        raise NotACheckout(f"{' '.join(command[:4])} …: {reason.strip()}") from exc
    return done.stdout.strip()


def _version(root: Path) -> str:
    """Git's short name, with + where files were changed since; without git the folder's name."""
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return root.name
    return told.stdout.strip() or root.name
