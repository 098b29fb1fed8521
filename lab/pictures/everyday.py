"""The sandbox and its console after a little talk, in a language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.doubles.processes import stop
from lab.pictures.browser import Browser
from lab.pictures.chats import PicturedChat


@dataclass(frozen=True)
class ExampleTalk:
    """`group` as it is called; who says what there, the second in the thread of the first; what the
    first says to the bot alone; how people ask what it can do, for their memory and settings; what
    they say aloud."""

    group: str
    kitchen: str
    people: tuple[str, str]
    said: tuple[str, ...]
    alone: tuple[str, ...]
    can: str
    memory: str
    settings: str
    aloud: str


TALK: dict[Language, ExampleTalk] = {
    "en": ExampleTalk(
        group="Launch team",
        kitchen="Kitchen",
        people=("Alice", "Bob"),
        said=(
            "remember that our launch is on 3 March",
            "our launch moved to 10 March",
            "when is our launch?",
            "create a note titled press kit with tags media, draft",
            "list my notes",
        ),
        alone=(
            "remember that I work from home on Fridays",
            "remember that my manager is Grace",
            "remember that our guests drink green tea",
            "create a note titled shopping list with tags party",
        ),
        can="what can you do?",
        memory="/memory",
        settings="/settings",
        aloud="what do I do on Fridays?",
    ),
    "zh": ExampleTalk(
        group="发布小组",
        kitchen="茶水间",
        people=("陈晨", "李雷"),
        said=(
            "记住我们的发布日是 3 月 3 日",
            "我们的发布日改到 3 月 10 日",
            "我们的发布日是哪天？",
            "建一条笔记，标题是新闻稿，标签是媒体、草稿",
            "列出我的笔记",
        ),
        alone=(
            "记住我每周五在家办公",
            "记住我的主管是王芳",
            "记住我们的客人爱喝绿茶",
            "建一条笔记，标题是采购清单，标签是聚会",
        ),
        can="你能做什么？",
        memory="/记忆",
        settings="/设置",
        aloud="我每周五在哪里办公？",
    ),
}
Taken = tuple[str, bytes]


@dataclass
class Everyday:
    """A sandbox in which the talk of a language was had."""

    sandbox: Sandbox
    browser: Browser
    language: Language

    def pictures(self) -> Iterator[Taken]:
        """Name and content of each."""
        yield from self._chat()
        yield from self._console()
        yield from self._cards()
        yield from self._voice()

    def _chat(self) -> Iterator[Taken]:
        with self._opened(height=600) as page:
            page.locator(".card summary").last.click()  # the sources of the last answer
            page.wait_for_timeout(500)
            yield "sandbox", self.browser.picture(page)
            page.click("#show-platform")
            page.wait_for_selector("#platform[open] input")
            page.evaluate("document.getElementById('platform').scrollTop = 1e6")
            yield "switches", self.browser.picture(page.locator("#platform"))

    def _cards(self) -> Iterator[Taken]:
        talk = TALK[self.language]
        with self._opened(height=1600, scale=2) as page:
            chat = PicturedChat(self.sandbox, self.browser, page, self.sandbox.group)
            chat.ask(f"@{self.sandbox.bot} {talk.can}")
            yield "card", chat.picture()
            chat.ask(f"@{self.sandbox.bot} {talk.settings}")
            yield "settings", chat.picture()
            page.click(f"#chat-list :text-is('{talk.people[0]}')")
            page.wait_for_selector(".message")
            chat.ask(talk.memory)
            yield "memory", chat.picture()

    def _voice(self) -> Iterator[Taken]:
        """A voice message in the private chat, its answer, and the menu below."""
        talk = TALK[self.language]
        with self._opened(height=640) as page:
            page.click(f"#chat-list :text-is('{talk.people[0]}')")
            page.wait_for_selector("#bot-menu button")
            cards = page.locator(".message .card").count()
            page.fill("#text", talk.aloud)
            page.click("#speak")
            page.wait_for_function(
                "n => document.querySelectorAll('.message .card').length > n", arg=cards
            )
            page.wait_for_timeout(1000)
            yield "voice", self.browser.picture(page.locator("#chat"))

    def _console(self) -> Iterator[Taken]:
        with self.browser.page(self.language) as page:
            page.goto(self.sandbox.link())
            page.wait_for_selector(".u-over")
            yield "console", self.browser.picture(page)
            page.goto(f"{self.sandbox.url}/console/turns")
            yield "conversations", self.browser.picture(page)
            page.locator(".jobs a").last.click()
            page.wait_for_selector(".drawn .card-body")
            yield "turn", self.browser.picture(page)

    @contextmanager
    def _opened(self, *, height: int = 860, scale: int = 1) -> Iterator[Any]:
        talk = TALK[self.language]
        with self.browser.page(self.language, height=height, scale=scale) as page:
            page.goto(f"{self.sandbox.url}/")
            page.click(f"#chat-list :text-is('{talk.group}')")
            page.select_option("#speaker", label=talk.people[0])
            page.wait_for_selector(".card")
            page.wait_for_selector("#sections td", state="attached")
            yield page


@contextmanager
def everyday(
    folder: Path, browser: Browser, language: Language, say: Callable[[str], None]
) -> Iterator[Everyday]:
    """The one command, after the talk."""
    say(f"starting the sandbox ({language})")
    sandbox = Sandbox(folder)
    try:
        _talk(sandbox, TALK[language])
        yield Everyday(sandbox, browser, language)
    finally:
        stop(sandbox.process)


def _talk(sandbox: Sandbox, talk: ExampleTalk) -> None:
    names = {chat["name"]: chat["chat_id"] for chat in sandbox.platform.state()["chats"]}
    for before, name in (("Launch team", talk.group), ("Kitchen", talk.kitchen)):
        sandbox.platform.post("/rename", chat_id=names[before], name=name)
    for name in talk.people:
        if name not in sandbox.people:
            person = sandbox.platform.post("/people", name=name)["open_id"]
            sandbox.people[name] = person
            sandbox.platform.post("/join", chat_id=sandbox.group, open_id=person)
    first, second = talk.people
    kept, moved, asked, note, notes = talk.said
    root = sandbox.ask(second, note)
    sandbox.ask(second, notes, root_id=root)
    root = sandbox.ask(first, kept)
    sandbox.ask(first, moved, root_id=root)
    sandbox.give_feedback(sandbox.ask(second, asked, root_id=root))
    alone = sandbox.platform.post("/enter", **{"as": sandbox.people[first]})["chat_id"]
    for text in talk.alone:
        sandbox.tell(first, text, alone)
