"""Calendars in the sandbox: free times allowed and told, a meeting offered and booked, and the page
that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.illustrations.browser import Browser

NAMES = ("calendar-allow", "calendar-offer", "calendar-booked", "calendar-page")
_OWNER = "Alice"


@dataclass(frozen=True)
class _AgendaWords:
    """`group`: a new one; `language`: the command that chooses it; `free`: a question; `book`: a
    wish; `confirm`: the button that books."""

    group: str
    language: str
    free: str
    book: str
    confirm: str


_WORDS: dict[Language, _AgendaWords] = {
    "en": _AgendaWords(
        group="Launch meetings",
        language="/settings language en",
        free="when is Bob free next Thursday?",
        book="book an hour with Bob next Thursday, call it launch",
        confirm="Confirm",
    ),
    "zh": _AgendaWords(
        group="发布会议",
        language="/设置 语言 中文",
        free="Bob 下周四什么时候有空？",
        book="约 Bob 下周四开一小时的会，叫发布",
        confirm="确认",
    ),
}


def agenda_pictures(
    sandbox: Sandbox, browser: Browser, language: Language
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each, in the order of what is done."""
    words, people = _WORDS[language], list(sandbox.people.values())[:3]
    group = sandbox.platform.post("/chats", name=words.group, members=people)["chat_id"]
    sandbox.ask(_OWNER, words.language, group)
    with browser.page(language, height=1600, scale=2) as page:
        page.goto(f"{sandbox.url}/")
        page.click(f"#chat-list :text-is('{words.group}')", no_wait_after=True)
        page.select_option("#speaker", label=_OWNER)
        yield "calendar-allow", _allowed(page, browser, sandbox, group, words.free)
        sandbox.ask(_OWNER, words.free, group)
        _allowed(page, browser, sandbox, group, words.book)
        sandbox.ask(_OWNER, words.book, group)
        button = page.locator(f".message:has(button:text-is('{words.confirm}'))").last
        button.wait_for(timeout=60_000)
        page.wait_for_timeout(1500)
        yield "calendar-offer", _picture(page, browser, button)
        button.locator(f"button:text-is('{words.confirm}')").click()
        booked = page.locator(".message:has(.card):has-text('✅')").last
        booked.wait_for(timeout=60_000)
        page.wait_for_timeout(1500)
        yield "calendar-booked", _picture(page, browser, booked)
        page.set_viewport_size({**page.viewport_size, "height": 900})
        page.click("#show-agendas")
        page.wait_for_selector("#agendas li")
        page.wait_for_timeout(4000)  # the notice goes
        yield "calendar-page", _picture(page, browser, page.locator("#agendas"))


def _allowed(page: Any, browser: Browser, sandbox: Sandbox, group: str, wish: str) -> bytes:
    """The card with the link that a wish brings, which is then approved."""
    sandbox.ask(_OWNER, wish, group)
    card = page.locator(".message:has(a[href*='user_code'])").last
    card.wait_for(timeout=60_000)
    link = card.locator("a[href*='user_code']").get_attribute("href")
    shown = _picture(page, browser, card)
    sandbox.platform.post("/grants", **{"as": sandbox.people[_OWNER]}, link=link, approve=True)
    card.wait_for(state="detached", timeout=60_000)
    return shown


def _picture(page: Any, browser: Browser, shown: Any) -> bytes:
    page.mouse.move(0, 0)  # or the message below the pointer offers its own buttons
    return browser.picture(shown)
