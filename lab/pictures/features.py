"""Pictures of features in the sandbox: imports, documents and calendars, in a language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.pictures.browser import Browser
from lab.pictures.chats import OWNER, PicturedChat, opened

IMPORTS = ("import-preview", "import-progress", "import-report", "import-answer", "import-removal")
DOCUMENTS = (
    "document-connect", "document-approve", "document-answer", "document-private",
    "document-comment",
)  # fmt: skip
AGENDAS = ("calendar-allow", "calendar-offer", "calendar-booked", "calendar-page")
_MESSAGES = 800
_NOTICE_MS = 5000  # until a notice is gone
Taken = tuple[str, bytes]


@dataclass(frozen=True)
class _Import:
    """`running` and `report` begin a card; `question` asks about something that was said there."""

    group: str
    command: str
    preview: str
    start: str
    remove: str
    running: str
    report: str
    rule: str
    question: str


@dataclass(frozen=True)
class _Documents:
    """An `open` and a `closed` document with a line and a question each; `show` is the offer's
    button; `comment` a passage of the open document and a question about it."""

    group: str
    connect: str
    open: tuple[str, str]
    closed: tuple[str, str]
    asks: tuple[str, str]
    show: str
    comment: tuple[str, str]


@dataclass(frozen=True)
class _Agenda:
    """`free` is a question, `book` a wish, `confirm` the button that books."""

    group: str
    free: str
    book: str
    confirm: str


_IMPORT: dict[Language, _Import] = {
    "en": _Import(
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
    "zh": _Import(
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
_DOCUMENTS: dict[Language, _Documents] = {
    "en": _Documents(
        group="Launch documents",
        connect="/connect",
        open=("Launch plan", "The launch is on 3 March, with 200 testers."),
        closed=("Budget draft", "The budget of the launch is 42,000 EUR."),
        asks=("when is the launch? {url}", "what is the budget? {url}"),
        show="Show me",
        comment=("200 testers", "how many testers are there at the launch?"),
    ),
    "zh": _Documents(
        group="发布文档",
        connect="/连接",
        open=("发布计划", "发布时间是3月3日，有200名测试者。"),
        closed=("预算草案", "发布的预算是42万元。"),
        asks=("发布时间是哪天？{url}", "预算是多少？{url}"),
        show="查看",
        comment=("200名测试者", "发布时有多少名测试者？"),
    ),
}
_AGENDA: dict[Language, _Agenda] = {
    "en": _Agenda(
        group="Launch meetings",
        free="when is Bob free next Thursday?",
        book="book an hour with Bob next Thursday, call it launch",
        confirm="Confirm",
    ),
    "zh": _Agenda(
        group="发布会议",
        free="Bob 下周四什么时候有空？",
        book="约 Bob 下周四开一小时的会，叫发布",
        confirm="确认",
    ),
}
_SELECT = """passage => {
  const text = document.getElementById("comment-page").firstChild;
  const at = text.textContent.indexOf(passage);
  const range = document.createRange();
  range.setStart(text, at);
  range.setEnd(text, at + passage.length);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""


def import_pictures(sandbox: Sandbox, browser: Browser, language: Language) -> Iterator[Taken]:
    """A group's past: previewed, read, asked about, taken out again."""
    words, bot = _IMPORT[language], sandbox.bot
    made = sandbox.platform.post("/pasts", messages=_MESSAGES, name=words.group, seed=1)
    with opened(sandbox, browser, language, words.group, made["chat_id"]) as chat:
        chat.ask(f"@{bot} {words.command}")
        chat.newest.locator("select").select_option("all")
        chat.press(words.preview)
        yield "import-preview", chat.picture()
        chat.press(words.start)
        yield "import-progress", chat.picture(chat.saying(words.running))
        chat.saying(words.report).wait_for(timeout=300_000)
        yield "import-report", chat.picture(chat.saying(words.report))
        chat.ask(f"@{bot} {words.rule}")
        chat.ask(f"@{bot} {words.question}")
        chat.newest.locator("summary").first.click()
        yield "import-answer", chat.picture()
        chat.ask(f"@{bot} {words.command}")
        chat.press(words.remove)
        yield "import-removal", chat.picture()


def document_pictures(sandbox: Sandbox, browser: Browser, language: Language) -> Iterator[Taken]:
    """An account connected, a group told, the rest told to the asker alone, a comment answered."""
    words = _DOCUMENTS[language]
    with opened(sandbox, browser, language, words.group) as chat:
        for card, link in chat.connect(words.connect):
            yield "document-connect", card
            with browser.page(language, height=900, scale=2) as approving:
                approving.goto(link)
                approving.locator("button").first.wait_for()
                yield "document-approve", browser.picture(approving.locator("main"))
        _ask_about(chat, words.open, "tenant_readable", words.asks[0])
        yield "document-answer", chat.picture()
        _ask_about(chat, words.closed, "closed", words.asks[1])
        button = chat.page.locator(f"button:text-is('{words.show}')")
        offer = chat.page.locator(".message:has(.card)", has=button).last
        offer.wait_for(timeout=60_000)
        pressed = chat.page.locator(f"[data-id='{offer.get_attribute('data-id')}']")
        pressed.locator(button).click()
        pressed.wait_for(state="detached", timeout=60_000)
        chat.resize(720)
        chat.page.evaluate("document.getElementById('messages').scrollTop = 1e6")
        chat.page.wait_for_timeout(_NOTICE_MS)
        yield "document-private", chat.picture(chat.page.locator("#messages"))
        chat.resize(900)
        yield "document-comment", _commented(chat, words)


def agenda_pictures(sandbox: Sandbox, browser: Browser, language: Language) -> Iterator[Taken]:
    """Free times allowed and told, a meeting offered and booked, and the page that shows it."""
    words = _AGENDA[language]
    with opened(sandbox, browser, language, words.group) as chat:
        for card, _ in chat.connect(words.free):
            yield "calendar-allow", card
        sandbox.ask(OWNER, words.free, chat.chat_id)
        for _ in chat.connect(words.book):
            pass
        sandbox.ask(OWNER, words.book, chat.chat_id)
        offer = chat.page.locator(f".message:has(button:text-is('{words.confirm}'))").last
        offer.wait_for(timeout=60_000)
        chat.page.wait_for_timeout(1500)
        yield "calendar-offer", chat.picture(offer)
        offer.locator(f"button:text-is('{words.confirm}')").click()
        booked = chat.page.locator(".message:has(.card):has-text('✅')").last
        booked.wait_for(timeout=60_000)
        chat.page.wait_for_timeout(1500)
        yield "calendar-booked", chat.picture(booked)
        chat.resize(900)
        chat.page.click("#show-agendas")
        chat.page.wait_for_selector("#agendas li")
        chat.page.wait_for_timeout(_NOTICE_MS)
        yield "calendar-page", chat.picture(chat.page.locator("#agendas"))


def comment_on(page: Any, passage: str, who: str, bot: str, question: str) -> None:
    """Selects a passage of the open document, and asks the bot about it as a person types."""
    page.evaluate(_SELECT, passage)
    page.locator("#comment-page").dispatch_event("mouseup")
    page.select_option("#comment-as", label=who)
    page.locator("#comment-text").press_sequentially(f"@{bot[:2]}")
    page.locator("#comment-completion li").first.wait_for()
    page.keyboard.press("Enter")
    page.locator("#comment-text").press_sequentially(question)
    page.keyboard.press("Enter")


def _commented(chat: PicturedChat, words: _Documents) -> bytes:
    (title, _), (passage, question) = words.open, words.comment
    chat.page.click("#show-shelf")
    chat.page.locator(".document", has_text=title).locator("button").first.click()
    chat.page.locator("#comment-page:not(:empty)").wait_for()
    comment_on(chat.page, passage, OWNER, chat.sandbox.bot, question)
    chat.page.locator(".comment-reply").nth(1).wait_for(timeout=60_000)
    return chat.picture(chat.page.locator("#shelf"))


def _ask_about(chat: PicturedChat, document: tuple[str, str], link: str, question: str) -> None:
    """Asks about a new document."""
    title, line = document
    who = {"as": chat.sandbox.people[OWNER]}
    blocks = [{"kind": "text", "text": line}]
    made = chat.sandbox.platform.post("/documents", **who, title=title, link=link, blocks=blocks)
    chat.sandbox.ask(OWNER, question.format(url=made["url"]), chat.chat_id)
    chat.newest.wait_for()
    chat.page.wait_for_timeout(1500)
