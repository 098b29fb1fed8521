"""A browser for pages of ours, and what axe-core finds wrong on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.doubles.processes import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
_LOOK = """axe.run(%s).then(found => found.violations.map(
  one => one.id + ": " + one.nodes.map(node => node.html.slice(0, 120)).join(" | ")))"""
# There is nothing to draw with but the processor, and nobody to report to.
_OPTIONS = ("--disable-gpu", "--disable-background-networking")
_ALL = '{"preload": false}'  # it would put styles into the page, which its policy forbids
COLOURS = '{"preload": false, "runOnly": ["color-contrast"]}'


@contextmanager
def browser() -> Iterator[Any]:
    """Runs Chromium, or skips the test if there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: `apt-get install chromium` enables the tests of pages")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        options = [*_OPTIONS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield launched
        finally:
            launched.close()


def looked(page: Any, look: str) -> list[str]:
    """The findings of a page that is looked at in light first: in dark only colours differ."""
    return findings(page, COLOURS if look == "dark" else _ALL)


def findings(page: Any, options: str = _ALL) -> list[str]:
    """What axe-core finds on the page, whatever its policy says about scripts; with `COLOURS` of
    colours alone, for a page that was looked at in others."""
    session = page.context.new_cdp_session(page)

    def run(script: str) -> Any:
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = session.send("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    if not run("Boolean(window.axe)"):
        run(AXE.read_text(encoding="utf-8"))
    found: list[str] = run(_LOOK % options)
    session.detach()
    return found


def is_wider_than_its_window(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def scrolled_sideways(page: Any) -> list[str]:
    """The labels of the regions whose content is wider than they are."""
    script = (
        "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-label'))"
    )
    return list(page.evaluate(script))
