"""A chat of the sandbox in a browser: asked, pressed and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.pictures.browser import Browser

OWNER = "Alice"
CHOOSE_LANGUAGE = {"en": "/settings language en", "zh": "/设置 语言 中文"}
_DRAWN_MS = 1000


@dataclass(frozen=True, slots=True)
class PicturedChat:
    """A group on a page, as its owner sees it."""

    sandbox: Sandbox
    browser: Browser
    page: Any
    chat_id: str

    @property
    def newest(self) -> Any:
        """The last card."""
        return self.page.locator(".message:has(.card)").last

    def saying(self, words: str) -> Any:
        """Finds the last card with these words."""
        return self.page.locator(".message:has(.card)", has_text=words).last

    def picture(self, shown: Any = None) -> bytes:
        """Draws a part of the page, or the last card."""
        self.page.mouse.move(0, 0)  # or the message below the pointer offers its own buttons
        return self.browser.picture(shown or self.newest)

    def ask(self, text: str) -> None:
        """Writes into the chat and waits for the card."""
        self.page.fill("#text", text)
        self.page.keyboard.press("Escape")
        self._answered(lambda: self.page.click("#send"))

    def press(self, label: str) -> None:
        """Presses a button of the last card and waits for the next one."""
        self._answered(self.newest.locator(f"button:text-is('{label}')").click)

    def connect(self, wish: str) -> Iterator[tuple[bytes, str]]:
        """Asks for what needs the account. Yields the card and its link, then approves."""
        self.sandbox.ask(OWNER, wish, self.chat_id)
        card = self.page.locator(".message:has(a[href*='user_code'])").last
        card.wait_for(timeout=60_000)
        link = card.locator("a[href*='user_code']").get_attribute("href")
        yield self.picture(card), link
        who = {"as": self.sandbox.people[OWNER]}
        self.sandbox.platform.post("/grants", **who, link=link, approve=True)
        card.wait_for(state="detached", timeout=60_000)

    def resize(self, height: int) -> None:
        self.page.set_viewport_size({**self.page.viewport_size, "height": height})

    def _answered(self, act: Callable[[], None]) -> None:
        before = self.page.locator(".message:has(.card)").count()
        act()
        self.page.wait_for_function(
            "n => document.querySelectorAll('.message:has(.card)').length > n"
            " && !document.querySelector('.card.streaming')",
            arg=before,
        )
        self.page.wait_for_timeout(_DRAWN_MS)


@contextmanager
def opened(
    sandbox: Sandbox, browser: Browser, language: Language, name: str, chat_id: str = ""
) -> Iterator[PicturedChat]:
    """Opens the group `name`, a new one without `chat_id`, in its language."""
    if not chat_id:
        people = list(sandbox.people.values())[:3]
        chat_id = sandbox.platform.post("/chats", name=name, members=people)["chat_id"]
    sandbox.ask(OWNER, CHOOSE_LANGUAGE[language], chat_id)
    with browser.page(language, height=1600, scale=2) as page:
        page.goto(f"{sandbox.url}/")
        page.click(f"#chat-list :text-is('{name}')", no_wait_after=True)
        page.select_option("#speaker", label=OWNER)
        page.wait_for_selector(".message")
        yield PicturedChat(sandbox, browser, page, chat_id)
