"""Documents in the sandbox: an account connected, a group told, the rest told to who asks alone, a
comment answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.text.languages import Language
from lab.doubles.one_command import Sandbox
from lab.doubles.processes import eventually
from lab.illustrations.browser import Browser

NAMES = (
    "document-connect",
    "document-approve",
    "document-answer",
    "document-private",
    "document-comment",
)
_OWNER = "Alice"


@dataclass(frozen=True)
class _DocumentWords:
    """`group`: a new one; `language`: the command that chooses it; an `open` and a `closed`
    document with a line of theirs and a question each; `show`: the offer's button; `comment`: a
    passage of the open document, and what is asked about it."""

    group: str
    language: str
    connect: str
    open: tuple[str, str]
    closed: tuple[str, str]
    asks: tuple[str, str]
    show: str
    comment: tuple[str, str]


_WORDS: dict[Language, _DocumentWords] = {
    "en": _DocumentWords(
        group="Launch documents",
        language="/settings language en",
        connect="/connect",
        open=("Launch plan", "The launch is on 3 March, with 200 testers."),
        closed=("Budget draft", "The budget of the launch is 42,000 EUR."),
        asks=("when is the launch? {url}", "what is the budget? {url}"),
        show="Show me",
        comment=("200 testers", "how many testers are there at the launch?"),
    ),
    "zh": _DocumentWords(
        group="发布文档",
        language="/设置 语言 中文",
        connect="/连接",
        open=("发布计划", "发布时间是3月3日，有200名测试者。"),
        closed=("预算草案", "发布的预算是42万元。"),
        asks=("发布时间是哪天？{url}", "预算是多少？{url}"),
        show="查看",
        comment=("200名测试者", "发布时有多少名测试者？"),
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


def document_pictures(
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
        sandbox.platform.say(sandbox.people[_OWNER], group, f"@{sandbox.bot} {words.connect}")
        card = page.locator(".message:has(a[href*='user_code'])").last
        card.wait_for()
        link = card.locator("a[href*='user_code']").get_attribute("href")
        yield "document-connect", _picture(page, browser, card)
        with browser.page(language, height=900, scale=2) as approving:
            approving.goto(link)
            approving.locator("button").first.wait_for()
            yield "document-approve", browser.picture(approving.locator("main"))
        sandbox.platform.post("/grants", **{"as": sandbox.people[_OWNER]}, link=link, approve=True)
        card.wait_for(state="detached", timeout=60_000)
        yield "document-answer", _asked(page, browser, sandbox, group, words, 0)
        _asked(page, browser, sandbox, group, words, 1)
        offer = page.locator(
            ".message:has(.card)", has=page.locator(f"button:text-is('{words.show}')")
        ).last
        offer.wait_for(timeout=60_000)
        offer.locator(f"button:text-is('{words.show}')").click()
        offer.wait_for(state="detached", timeout=60_000)
        page.set_viewport_size({**page.viewport_size, "height": 720})
        page.evaluate("document.getElementById('messages').scrollTop = 1e6")
        page.wait_for_timeout(5000)  # the notice goes
        yield "document-private", _picture(page, browser, page.locator("#messages"))
        page.set_viewport_size({**page.viewport_size, "height": 900})
        yield "document-comment", _commented(page, browser, sandbox, words)


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


def _commented(page: Any, browser: Browser, sandbox: Sandbox, words: _DocumentWords) -> bytes:
    """A comment on a passage of the open document, as somebody writes it, and its answer."""
    (title, _), (passage, question) = words.open, words.comment
    page.click("#show-shelf")
    page.locator(".document", has_text=title).locator("button").first.click()
    page.locator("#comment-page:not(:empty)").wait_for()
    comment_on(page, passage, _OWNER, sandbox.bot, question)
    page.locator(".comment-reply").nth(1).wait_for(timeout=60_000)
    return _picture(page, browser, page.locator("#shelf"))


def _asked(
    page: Any, browser: Browser, sandbox: Sandbox, group: str, words: _DocumentWords, number: int
) -> bytes:
    """The answer to a question about one of the two documents."""
    title, line = (words.open, words.closed)[number]
    body = {
        "as": sandbox.people[_OWNER],
        "title": title,
        "link": ("tenant_readable", "closed")[number],
        "blocks": [{"kind": "text", "text": line}],
    }
    url = sandbox.platform.post("/documents", **body)["url"]
    sandbox.ask(_OWNER, words.asks[number].format(url=url), group)
    shown = page.locator(".message:has(.card)")
    eventually(lambda: shown.count() > 0, what="an answer")
    page.wait_for_timeout(1500)
    return _picture(page, browser, shown.last)


def _picture(page: Any, browser: Browser, shown: Any) -> bytes:
    page.mouse.move(0, 0)  # or the message below the pointer offers its own buttons
    return browser.picture(shown)
