"""Recall by meaning, from its set-up at a terminal to the first find in the chat."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from bot.settings import LOCAL_EMBEDDINGS
from bot.text.languages import Language
from lab.doubles.vectors_set_up import TALK, value_of, vectors_set_up
from lab.illustrations.browser import Browser
from lab.illustrations.terminal import page_of


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
    return page_of(shown, below=f'<img src="data:image/png;base64,{png}">')


def _both(page: Any, asked: str) -> dict[str, float]:
    """Where the question and the card that answers it stand on the page."""
    question = page.locator(".message", has_text=asked).last.bounding_box()
    card = page.locator(".message:has(.card)").last.bounding_box()
    top = min(question["y"], card["y"])
    bottom = max(one["y"] + one["height"] for one in (question, card))
    return {"x": card["x"], "y": top, "width": card["width"], "height": bottom - top}
