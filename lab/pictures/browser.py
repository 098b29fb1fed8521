"""Chromium for pictures: pages in a language, and what they show as small PNG files."""

from __future__ import annotations

import base64
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bot.text.languages import Language

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_LOCALES = {"en": "en-GB", "zh": "zh-CN"}
# The 256 most frequent colours that differ visibly, and for each pixel the number of the nearest.
_COLOURS = """async (png) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const { width, height } = image;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const data = new Uint32Array(canvas.getImageData(0, 0, width, height).data.buffer);
  const times = new Map();
  for (const one of data) times.set(one, (times.get(one) || 0) + 1);
  const most = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const palette = [];
  const nearest = (one) => {
    let best = 0, least = Infinity;
    palette.forEach(([r, g, b], number) => {
      const [red, green, blue] = [r - (one & 255), g - (one >> 8 & 255), b - (one >> 16 & 255)];
      const far = red ** 2 + green ** 2 + blue ** 2;
      if (far < least) [best, least] = [number, far];
    });
    return [best, least];
  };
  for (const [one] of most) {
    if (palette.length < 256 && nearest(one)[1] >= 48) {
      palette.push([one & 255, one >> 8 & 255, one >> 16 & 255]);
    }
  }
  const numbers = new Map(most.map(([one]) => [one, nearest(one)[0]]));
  let pixels = "";
  for (const one of data) pixels += String.fromCharCode(numbers.get(one));
  return { width, height, palette, pixels: btoa(pixels) };
}"""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE, _WHOLE_ROWS = 3, 0


class NoBrowser(Exception):
    """There is nothing to take pictures with; the message says what to install."""


class Browser:
    """A running Chromium."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._palette = chromium.new_page()

    @contextmanager
    def page(
        self, language: Language = "en", *, width: int = 1280, height: int = 860, scale: int = 1
    ) -> Iterator[Any]:
        """An empty page of its own; `scale` is the pixels of a point."""
        context = self._chromium.new_context(
            locale=_LOCALES[language],
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
            reduced_motion="reduce",
        )
        try:
            yield context.new_page()
        finally:
            context.close()

    def picture(self, shown: Any) -> bytes:
        """What a page or a part of one shows, with 256 colours at most."""
        png = base64.b64encode(shown.screenshot()).decode()
        found = self._palette.evaluate(_COLOURS, png)
        pixels = base64.b64decode(found["pixels"])
        return indexed_png(found["width"], found["palette"], pixels)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Raises `NoBrowser`."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise NoBrowser(
            "There is no Chromium: apt-get install chromium fonts-noto-core fonts-noto-cjk"
            " fonts-noto-color-emoji"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as exc:
        raise NoBrowser(
            "Playwright is not installed: .venv/bin/pip install -r requirements-dev.txt"
        ) from exc
    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield Browser(chromium)
        finally:
            chromium.close()


def indexed_png(width: int, palette: Sequence[Sequence[int]], pixels: bytes) -> bytes:
    """Builds a PNG file with a palette (W3C, Portable Network Graphics). `pixels` are numbers in
    `palette` (red, green, blue), row by row, `width` in each."""
    rows = range(0, len(pixels), width)
    header = struct.pack(">IIBBBBB", width, len(rows), 8, _PALETTE, 0, 0, 0)
    lines = b"".join(bytes([_WHOLE_ROWS]) + pixels[row : row + width] for row in rows)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", b"".join(map(bytes, palette))),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
