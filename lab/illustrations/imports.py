"""A group's past in the sandbox: previewed, read, asked about, taken out again, in a language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.illustrations.browser import Browser

NAMES = ("import-preview", "import-progress", "import-report", "import-answer", "import-removal")
_MESSAGES = 800
_OWNER = "Alice"


@dataclass(frozen=True)
class _Words:
    """`group` as it is called; what is written and pressed there; how the card of a running import
    begins, and the report; `question`: about something that was said there."""

    group: str
    command: str
    preview: str
    start: str
    remove: str
    running: str
    report: str
    rule: str
    question: str


_WORDS: dict[Language, _Words] = {
    "en": _Words(
        group="Harbour project",
        command="/import",
        preview="Preview",
        start="Import",
        remove="Remove",
        running="I'm importing this group's history",
        report="I've read this group's history",
        rule="/settings history shown",
        question="who booked a room at Trattoria Rosa?",
    ),
    "zh": _Words(
        group="港口项目",
        command="/导入",
        preview="预览",
        start="导入",
        remove="移除",
        running="正在导入本群的历史消息",
        report="我已读完本群的历史消息",
        rule="/设置 历史 可见",
        question="年终奖哪天发？",
    ),
}


def import_pictures(
    sandbox: Sandbox, browser: Browser, language: Language
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each, in the order of what is done."""
    words = _WORDS[language]
    made = sandbox.platform.post("/pasts", messages=_MESSAGES, name=words.group, seed=1)
    sandbox.ask(_OWNER, words.rule.split()[0] + f" {_language_rule(language)}", made["chat_id"])
    with browser.page(language, height=1600, scale=2) as page:
        page.goto(f"{sandbox.url}/")
        page.click(f"#chat-list :text-is('{words.group}')", no_wait_after=True)
        page.select_option("#speaker", label=_OWNER)
        page.wait_for_selector(".message")
        _ask(page, f"@{sandbox.bot} {words.command}")
        _newest(page).locator("select").select_option("all")
        _press(page, words.preview)
        yield "import-preview", _picture(page, browser, _newest(page))
        _press(page, words.start)
        yield "import-progress", _picture(page, browser, _saying(page, words.running))
        _saying(page, words.report).wait_for(timeout=300_000)
        yield "import-report", _picture(page, browser, _saying(page, words.report))
        _ask(page, f"@{sandbox.bot} {words.rule}")
        _ask(page, f"@{sandbox.bot} {words.question}")
        _newest(page).locator("summary").first.click()
        yield "import-answer", _picture(page, browser, _newest(page))
        _ask(page, f"@{sandbox.bot} {words.command}")
        _press(page, words.remove)
        yield "import-removal", _picture(page, browser, _newest(page))


def _language_rule(language: Language) -> str:
    return "language en" if language == "en" else "语言 中文"


def _picture(page: Any, browser: Browser, shown: Any) -> bytes:
    page.mouse.move(0, 0)  # or the message below the pointer offers its own buttons
    return browser.picture(shown)


def _newest(page: Any) -> Any:
    return page.locator(".message:has(.card)").last


def _saying(page: Any, words: str) -> Any:
    return page.locator(".message:has(.card)", has_text=words).last


def _press(page: Any, label: str) -> None:
    button = _newest(page).locator(f"button:text-is('{label}')")
    _answered(page, button.click)


def _ask(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.keyboard.press("Escape")
    _answered(page, lambda: page.click("#send"))


def _answered(page: Any, act: Callable[[], None]) -> None:
    """Does what a new card answers, and waits until that is drawn whole."""
    before = page.locator(".message:has(.card)").count()
    act()
    page.wait_for_function(
        "n => document.querySelectorAll('.message:has(.card)').length > n"
        " && !document.querySelector('.card.streaming')",
        arg=before,
    )
    page.wait_for_timeout(1000)
