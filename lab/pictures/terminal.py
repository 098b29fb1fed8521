"""A terminal: the first start."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from html import escape
from pathlib import Path

from lab.doubles.processes import ROOT, clean_environment, free_port

_READY = "\nReady: "
_PORT = "8080"  # that of a bot without settings
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #15181d; color: #d8dde5; }
pre { margin: 0; padding: 18px 22px; white-space: pre;
      font: 14px/20px "Noto Sans Mono", "DejaVu Sans Mono", monospace;
      width: fit-content; min-width: 676px; }
b { color: #fff; } i { color: #e8c267; font-style: normal; }
.ready { color: #7ee2a0; font-weight: 600; }
</style><pre>%s</pre>"""


def terminal_page(folder: Path) -> str:
    """HTML of the whole first start, its data in `folder`. Clock and process ids, which are others
    each time, are always the same here."""
    port = str(free_port())
    shown = f"$ scripts/start\n{_started(folder, port).replace(f':{port}', f':{_PORT}')}"
    return _PAGE % "\n".join(map(_drawn, shown.splitlines()))


def _started(folder: Path, port: str) -> str:
    """Returns what is there once the bot is ready."""
    here, theirs = pty.openpty()
    values = {"TERM": "xterm", "DATA_DIR": str(folder), "PORT": port}
    bot = subprocess.Popen(
        ["scripts/start"],
        cwd=ROOT,
        env={**clean_environment(), **values},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    try:
        while not (_READY in shown and shown.endswith("\n")):
            shown += os.read(here, 65536).decode("utf-8", "replace").replace("\r", "")
        return shown
    finally:
        bot.send_signal(signal.SIGTERM)
        bot.wait(60)
        os.close(here)


def _drawn(line: str) -> str:
    line = re.sub(r"^\d\d:\d\d:\d\d ", "09:30:00 ", line)
    line = re.sub(r"(pid[=:] ?|8080 \()\d+", r"\g<1>1001", line)
    line = escape(line)
    line = re.sub("\x1b\\[1m(.*?)\x1b\\[0m", r"<b>\1</b>", line)
    line = re.sub("\x1b\\[33m(.*?)\x1b\\[0m", r"<i>\1</i>", line)
    line = re.sub("\x1b\\[\\d*m", "", line)
    return f'<span class="ready">{line}</span>' if line.startswith("Ready:") else line
