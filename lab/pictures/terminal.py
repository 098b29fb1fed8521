"""Terminals: the first start, and vectors set up as far as the first find by meaning."""

from __future__ import annotations

import base64
import re
import signal
from html import escape
from pathlib import Path
from typing import Any

from bot.settings import LOCAL_EMBEDDINGS
from bot.text.languages import Language
from lab.doubles.processes import ROOT, eventually, free_port
from lab.doubles.vectors_set_up import TALK, Terminal, value_of, vectors_set_up
from lab.pictures.browser import Browser

_READY = "\nReady: "
_PORT = "8080"  # that of a bot without settings
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #15181d; color: #d8dde5; }
pre { margin: 0; padding: 18px 22px; white-space: pre;
      font: 14px/20px "Noto Sans Mono", "DejaVu Sans Mono", monospace;
      width: fit-content; min-width: 676px; }
b { color: #fff; } i { color: #e8c267; font-style: normal; }
.ready { color: #7ee2a0; font-weight: 600; }
img { display: block; padding: 0 22px 18px; }
main { width: fit-content; }
</style><main><pre>%s</pre>%s</main>"""


def terminal_page(folder: Path) -> str:
    """HTML of the whole first start, its data in `folder`. Clock and process ids, which are others
    each time, are always the same here."""
    port = str(free_port())
    return _page_of(f"$ scripts/start\n{_started(folder, port).replace(f':{port}', f':{_PORT}')}")


def meaning_page(folder: Path, browser: Browser, language: Language) -> str:
    """HTML: the terminal, and below it the question and its answer in the chat."""
    with vectors_set_up(folder, language, LOCAL_EMBEDDINGS) as scene:
        shown = f"$ scripts/setup --embeddings {LOCAL_EMBEDDINGS}\n{scene.set_up()}"
        with scene.started() as terminal:
            shown += f"\n$ scripts/start\n{terminal.shown}"
            scene.tell()
            with browser.page(language, width=960, height=1200) as page:
                page.goto(f"{scene.platform.url}/")
                scene.ask(TALK[language].asked)
                page.wait_for_timeout(2000)  # until it is drawn whole
                chat = page.screenshot(clip=_both(page, TALK[language].asked))
        usual = {scene.port: "8080", value_of(scene.folder, "EMBEDDING_PORT"): "8391"}
    for port, one in usual.items():
        shown = shown.replace(str(port), one)
    png = base64.b64encode(chat).decode()
    return _page_of(shown, below=f'<img src="data:image/png;base64,{png}">')


def _both(page: Any, asked: str) -> dict[str, float]:
    """Where the question and the card that answers it stand on the page."""
    question = page.locator(".message", has_text=asked).last.bounding_box()
    card = page.locator(".message:has(.card)").last.bounding_box()
    top = min(question["y"], card["y"])
    bottom = max(one["y"] + one["height"] for one in (question, card))
    return {"x": card["x"], "y": top, "width": card["width"], "height": bottom - top}


def _page_of(shown: str, below: str = "") -> str:
    """HTML of a terminal with `shown` on it, and more HTML below."""
    return _PAGE % ("\n".join(map(_drawn, shown.splitlines())), below)


def _started(folder: Path, port: str) -> str:
    """Returns what is there once the bot is ready."""
    terminal = Terminal()
    bot = terminal.start(["scripts/start"], ROOT, {"DATA_DIR": str(folder), "PORT": port})
    try:
        eventually(
            lambda: _READY in terminal.shown and terminal.shown.endswith("\n"),
            within_s=600, what="the bot is ready",
        )  # fmt: skip
        return terminal.shown
    finally:
        bot.send_signal(signal.SIGTERM)
        bot.wait(60)
        terminal.close()


def _drawn(line: str) -> str:
    line = re.sub(r"^\d\d:\d\d:\d\d ", "09:30:00 ", line)
    line = re.sub(r"(pid[=:] ?|8080 \()\d+", r"\g<1>1001", line)
    line = escape(line)
    line = re.sub("\x1b\\[1m(.*?)\x1b\\[0m", r"<b>\1</b>", line)
    line = re.sub("\x1b\\[33m(.*?)\x1b\\[0m", r"<i>\1</i>", line)
    line = re.sub("\x1b\\[\\d*m", "", line)
    return f'<span class="ready">{line}</span>' if line.startswith("Ready:") else line
