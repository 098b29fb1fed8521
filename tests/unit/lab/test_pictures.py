"""The pictures of the documents: what the script says, and what kind of files it writes."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import zlib

import pytest

from lab.doubles.processes import ROOT
from lab.pictures.browser import NoBrowser, indexed_png, running_browser

RED, WHITE = (255, 0, 0), (255, 255, 255)
PAGE = """<body style="margin: 0; background: #fff">
<div style="width: 40px; height: 20px; background: linear-gradient(90deg, #f00, #00f)"></div>"""
# How many colours a picture has, its size, and the first and the last point of its first row.
LOOK = """async (png) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const data = canvas.getImageData(0, 0, image.width, image.height).data;
  const points = new Set(new Uint32Array(data.buffer));
  const last = 4 * (image.width - 1);
  return [points.size, image.width, image.height, [...data.slice(0, 3)],
          [...data.slice(last, last + 3)]];
}"""


def run(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab.pictures", *arguments],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_without_a_browser_it_says_what_to_install() -> None:
    done = run("--only", "terminal", path="/nothing")

    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no Chromium: apt-get install chromium" in done.stderr


def test_it_lists_its_files() -> None:
    listed = run("--list", path=os.environ["PATH"]).stdout.splitlines()

    assert {"docs/terminal.png", "docs/zh/memory.png", "docs/queue-stands.png"} <= set(listed)
    assert "docs/zh/terminal.png" not in listed, "the log is in English"
    assert len(set(listed)) == len(listed)


def test_a_file_has_its_palette_and_the_numbers_of_its_points() -> None:
    png = indexed_png(2, [RED, WHITE], bytes([0, 1, 1, 0]))

    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert b"PLTE\xff\x00\x00\xff\xff\xff" in png
    start = png.index(b"IDAT") + 4
    assert zlib.decompressobj().decompress(png[start:]) == bytes([0, 0, 1, 0, 1, 0])


def test_a_picture_shows_the_page_with_few_colours() -> None:
    try:
        with running_browser() as browser, browser.page(width=300, height=200) as page:
            page.set_content(PAGE)
            png = base64.b64encode(browser.picture(page.locator("div"))).decode()
            colours, width, height, first, last = page.evaluate(LOOK, png)
    except NoBrowser as exc:
        pytest.skip(str(exc))

    assert (width, height) == (40, 20)
    assert 20 < colours <= 256
    assert first[0] > 240 > 20 > first[2]
    assert last[2] > 240 > 20 > last[0]
