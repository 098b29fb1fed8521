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
    """The folder of a command's --against."""
    try:
        return checkout_at(Path(text), "against")
    except NotACheckout as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _version(root: Path) -> str:
    """Git's short name, with + where files were changed since; without git the folder's name."""
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return root.name
    return told.stdout.strip() or root.name
