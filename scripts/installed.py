"""The command `feishu-memory-bot` of the installed package (uvx, pipx).

Without arguments it starts the bot, as `scripts/start` does in a checkout: the sandbox where no
Feishu app is configured. With arguments it is `scripts/bot`, which finds every other command.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from bot.operations.startup_checks import exit_with_sentence
from bot.settings import read

_PACKAGES = Path(__file__).resolve().parents[1]
_COMMANDS = "scripts.bot"


def main() -> int:
    """Does not return when it starts the bot: the supervisor takes this process over."""
    if len(sys.argv) == 1:
        _start()
    elif find_spec(_COMMANDS):
        runpy.run_module(_COMMANDS, run_name="__main__", alter_sys=True)
        return 0
    print(__doc__)
    return 0 if sys.argv[1] in ("-h", "--help") else 2


def _start() -> NoReturn:
    with exit_with_sentence():
        settings = read()
    if settings.feishu_app_id:
        print("starting the bot (Ctrl+C stops it)", flush=True)
    else:
        print(
            "starting the sandbox; its address follows when it is ready (Ctrl+C stops it)",
            flush=True,
        )
        print(f"what it keeps is in {settings.data_dir.resolve()}", flush=True)
    os.environ.update(_only_our_modules())
    os.execv(sys.executable, [sys.executable, "-m", "bot.process.supervisor"])  # noqa: S606


def _only_our_modules() -> dict[str, str]:
    """Another project's `app.py` in the folder it is started in is not ours.

    Python would look there first, and so would gunicorn, unless the folder is in the path already.
    """
    path = os.pathsep.join([str(_PACKAGES), str(Path.cwd())])
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": path}
