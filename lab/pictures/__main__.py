"""Makes the pictures of README and docs anew, in both languages, from the running product.

The sandbox runs with the offline model and example talk in each language; for the pictures of
trouble the bot runs beside stand-ins of Feishu and the model, and the trouble is real. Needs
Chromium with fonts for Chinese and emoji. Status 2 when it is missing.

Examples:
  scripts/pictures                       all, in about ten minutes
  scripts/pictures --list                their names and files
  scripts/pictures --only console --only memory
  scripts/pictures --only everyday       those of the chat and the console
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.settings import EXIT_STATUS
from bot.text.languages import LANGUAGES
from lab.doubles.processes import ROOT
from lab.pictures import features
from lab.pictures.browser import Browser, NoBrowser, running_browser
from lab.pictures.everyday import everyday
from lab.pictures.terminal import terminal_page
from lab.pictures.trouble import TROUBLES, trouble_pictures
from scripts.operating.arguments import parser, run_script

EVERYDAY = (
    "sandbox", "switches", "card", "settings", "memory", "console", "conversations", "turn",
    "voice",
)  # fmt: skip
TERMINAL = "terminal"  # in English alone, as the log is
_FEATURES = (
    (features.IMPORTS, features.import_pictures),
    (features.DOCUMENTS, features.document_pictures),
    (features.AGENDAS, features.agenda_pictures),
)
_IN_THE_SANDBOX = (*EVERYDAY, *(name for names, _ in _FEATURES for name in names))
NAMES = (TERMINAL, *_IN_THE_SANDBOX, *TROUBLES)
_FOLDERS = {"en": Path("docs"), "zh": Path("docs/zh")}


def main() -> int:
    given = _arguments()
    if given.list:
        print("\n".join(map(str, files(NAMES))))
        return 0
    wanted = _wanted(given.only)
    try:
        with running_browser() as browser:
            for language, name, content in _made(browser, wanted):
                if name in wanted:
                    _write(file_of(language, name), content)
    except NoBrowser as exc:
        print(exc, file=sys.stderr)
        return EXIT_STATUS
    return 0


def file_of(language: str, name: str) -> Path:
    """Where a picture lies, from the root of the checkout."""
    return _FOLDERS[language] / f"{name}.png"


def files(names: tuple[str, ...]) -> list[Path]:
    """Those of the pictures of these names."""
    return [
        file_of(language, name)
        for name in names
        for language in (LANGUAGES if name != TERMINAL else ("en",))
    ]


def _wanted(only: list[str] | None) -> set[str]:
    if not only:
        return set(NAMES)
    return {name for one in only for name in (EVERYDAY if one == "everyday" else (one,))}


def _made(browser: Browser, wanted: set[str]) -> Iterator[tuple[str, str, bytes]]:
    """Language, name and content of the pictures, and of those that come with them."""
    if TERMINAL in wanted:
        _say("starting the bot at a terminal")
        with _folder() as folder, browser.page() as page:
            page.set_content(terminal_page(folder))
            yield "en", TERMINAL, browser.picture(page.locator("pre"))
    for language in LANGUAGES if wanted & set(_IN_THE_SANDBOX) else ():
        with _folder() as folder, everyday(folder, browser, language, _say) as scene:
            for name, content in scene.pictures() if wanted & set(EVERYDAY) else ():
                yield language, name, content
            for names, pictures in _FEATURES:
                if wanted & set(names):
                    for name, content in pictures(scene.sandbox, browser, language):
                        yield language, name, content
    for name in TROUBLES:
        if name in wanted:
            _say(f"making trouble: {name}")
            yield from trouble_pictures(browser, name)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pictures-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _write(file: Path, content: bytes) -> None:
    (ROOT / file).write_bytes(content)
    _say(f"{file}  {len(content) / 1024:.0f} kB")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    options = parser("pictures", __doc__)
    names = (*NAMES, "everyday")
    options.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help="repeatable"
    )
    options.add_argument("--list", action="store_true", help="name the files and end")
    return options.parse_args()


if __name__ == "__main__":
    run_script(main)
