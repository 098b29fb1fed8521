"""The page of the one command in a real browser, as people use it: keyboard, reload, long chats."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from lab.doubles.one_command import Sandbox
from lab.doubles.processes import stop
from lab.pictures.features import comment_on
from tests.support import depth
from tests.support.pages import browser, is_wider_than_its_window, looked

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("SHOTS", "")  # a folder: pictures of every view, to be looked at
PAST = {"messages": 600, "seed": 7}  # of these the page reads 200 at a time
HERE = "document.activeElement"
_IS_IN_SIGHT = """text => {
  const box = document.getElementById("messages").getBoundingClientRect();
  return [...document.querySelectorAll(".message")].some(node => {
    const its = node.getBoundingClientRect();
    return node.textContent.includes(text) && its.top >= box.top && its.bottom <= box.bottom + 1;
  });
}"""

# axe-core takes a minute for all of a past.
EACH = (".system", ".card", ".file", ".picture", ".recalled", ".quoted", ".thread .bubble", ".at")
_KEEP_ONE_OF_EACH = """each => {
  const one = kind => document.querySelector(`#message-list ${kind}`).closest(".block");
  const kept = new Set(each.map(one));
  for (const block of document.querySelectorAll(".block")) if (!kept.has(block)) block.remove();
}"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    running = Sandbox(tmp_path_factory.mktemp("page"))
    try:
        running.ask("Alice", "remember that our launch is on 3 March")
        yield running
    finally:
        stop(running.process)


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def long_chat(sandbox: Sandbox) -> Sandbox:
    """More was said in the group than a window shows."""
    for number in range(40):
        sandbox.platform.say(sandbox.people["Bob"], sandbox.group, f"parcel {number}")
    return sandbox


@pytest.fixture(scope="module")
def tab(launched: Any) -> Any:
    """One tab for all tests, in English."""
    context = launched.new_context(locale="en-GB", viewport={"width": 1280, "height": 720})
    return context.new_page()


@pytest.fixture
def page(tab: Any, long_chat: Sandbox) -> Iterator[Any]:
    """The page as it opens first: in the group, as Alice."""
    faults: list[str] = []
    listen = lambda error: faults.append(str(error))  # noqa: E731
    tab.on("pageerror", listen)
    tab.goto(f"{long_chat.url}/")
    tab.wait_for_selector(".message")
    yield tab
    tab.evaluate("localStorage.clear(); sessionStorage.clear()")
    tab.goto("about:blank")
    tab.remove_listener("pageerror", listen)
    assert faults == []


def write(page: Any, text: str) -> None:
    page.click("#text")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def comes_into_sight(page: Any, text: str) -> None:
    page.wait_for_function(_IS_IN_SIGHT, arg=text)


def say_to(sandbox: Sandbox, who: str, whom: str, text: str, **more: Any) -> str:
    """One person to another, so that the bot has nothing to answer; the message."""
    return sandbox.platform.say(sandbox.people[who], sandbox.group, f"@{whom} {text}", **more)


def scroll_up(page: Any) -> None:
    page.evaluate("document.getElementById('messages').scrollTop = 0")
    page.wait_for_selector("#newest:not([hidden])")


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_axe_finds_nothing(launched: Any, sandbox: Sandbox, language: str) -> None:
    context = launched.new_context(locale=language)
    page = context.new_page()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{sandbox.url}/")
        page.wait_for_selector(".card")
        page.wait_for_selector("#sections td", state="attached")
        is_sound(page, f"chat-{language}-{width}")
        page.fill("#text", "")
        page.click("#text")
        page.keyboard.type("/")
        page.wait_for_selector("#completion li")
        is_sound(page, f"commands-{language}-{width}")
        page.keyboard.press("Escape")
        page.click("#show-platform")
        page.wait_for_selector("#platform[open] input")
        is_sound(page, f"switches-{language}-{width}")
        page.keyboard.press("Escape")
    context.close()


@pytest.mark.parametrize(
    ("who", "language", "keep", "ask"),
    [
        ("Alice", "en-GB", "remember that our {} is on 3 March", "/memory"),
        ("陈晨", "zh-CN", "记住我们的{}在三月三日", "/记忆"),
    ],
)
def test_what_is_remembered_is_a_list_with_its_buttons_beside_each_item(
    launched: Any, sandbox: Sandbox, who: str, language: str, keep: str, ask: str
) -> None:
    chat = sandbox.private_chat(who)
    long = "产品发布筹备与客户支持联合工作" * 4
    for word in ("launch", "review", "dinner", "retreat", long, long[::-1]):
        sandbox.ask(who, keep.format(word), chat)
    sandbox.ask(who, ask, chat)
    context = launched.new_context(locale=language)
    page = context.new_page()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{sandbox.url}/#/{chat}/{sandbox.people[who]}")
        page.wait_for_selector(".columns.stretch")
        is_sound(page, f"memory-{language}-{width}")
        rows = page.query_selector_all(".columns.stretch")
        assert len(rows) == 6, "five items, and which page it is"
        for row in rows[:5]:
            words, pressed = (one.bounding_box() for one in row.query_selector_all(".column"))
            correct, delete = (one.bounding_box() for one in row.query_selector_all("button"))
            assert correct["y"] == delete["y"], "the two stand in one line"
            beside = pressed["x"] >= words["x"] + words["width"]
            assert beside is (width > 640), "on a phone they stand below their item"
    context.close()


def is_sound(page: Any, view: str) -> None:
    """In both looks; a picture of each where somebody wants to see them. Colours are the same in
    every language and width."""
    in_both = SHOTS or depth.IS_DEEP or "en-GB-1280" in view
    for look in ("light", "dark") if in_both else ("light",):
        page.emulate_media(color_scheme=look)
        assert looked(page, look) == [], (view, look)
        assert not is_wider_than_its_window(page), (view, look)
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/{view}-{look}.png")


def test_what_one_sends_and_its_answer_are_in_sight(page: Any) -> None:
    scroll_up(page)
    write(page, "@Memo remember that our canteen opens at eleven")
    comes_into_sight(page, "@Memo remember that our canteen opens at eleven")
    comes_into_sight(page, "I'll remember")


def test_a_reply_in_an_old_thread_stays_in_sight_with_its_answer(page: Any) -> None:
    scroll_up(page)
    page.locator(".thread-reply").first.click()
    write(page, "@Memo when is our launch?")
    comes_into_sight(page, "@Memo when is our launch?")
    comes_into_sight(page, "@Alice You told me (")


def test_new_messages_disturb_nobody_who_reads_above_and_a_button_leads_to_them(
    page: Any, sandbox: Sandbox
) -> None:
    scroll_up(page)
    say_to(sandbox, "Alice", "Bob", "from elsewhere, one")
    say_to(sandbox, "Bob", "Alice", "from elsewhere, two")
    page.wait_for_selector("#newest:has-text('2 new messages')")
    assert page.evaluate("document.getElementById('messages').scrollTop") == 0

    page.click("#newest")
    comes_into_sight(page, "from elsewhere, two")
    assert page.locator("#newest").is_hidden()


def test_the_button_leads_to_the_end_first_and_then_to_replies_in_old_threads(
    page: Any, sandbox: Sandbox
) -> None:
    old = sandbox.platform.messages(sandbox.group)[10]["message_id"]
    scroll_up(page)
    first = say_to(sandbox, "Bob", "Alice", "at the end, one")
    say_to(sandbox, "Bob", "Alice", "at the end, two")
    say_to(sandbox, "Alice", "Bob", "on what was just said", reply_to=first)
    say_to(sandbox, "Alice", "Bob", "on an old line", reply_to=old)
    page.wait_for_selector("#newest:has-text('4 new messages')")

    page.click("#newest")
    comes_into_sight(page, "at the end, two")
    page.wait_for_selector("#newest:has-text('1 new message')")
    page.click("#newest")
    comes_into_sight(page, "on an old line")
    page.wait_for_selector("#newest:has-text('Jump to latest')")


def test_what_grows_right_after_going_to_the_end_leaves_the_end_in_sight(page: Any) -> None:
    scroll_up(page)
    page.evaluate("""() => {
      document.getElementById("newest").click();
      document.querySelector("#message-list > :last-child").style.paddingBottom = "600px";
    }""")
    page.wait_for_function("""() => {
      const box = document.getElementById("messages");
      return box.scrollHeight - box.scrollTop - box.clientHeight < 1;
    }""")
    scroll_up(page)


def test_the_focus_stays_where_it_is_while_others_write(page: Any, sandbox: Sandbox) -> None:
    asked = sandbox.platform.say(sandbox.people["Alice"], sandbox.group, "somebody there?")
    like = f".message[data-id='{asked}'] button[aria-label=Like]"
    page.wait_for_selector(like, state="attached")
    page.focus(like)
    page.keyboard.press("Enter")
    page.wait_for_selector(f".message[data-id='{asked}'] .reaction")
    sandbox.platform.say(sandbox.people["Bob"], sandbox.group, "I am")
    page.wait_for_selector(".message:has-text('I am')")
    assert page.evaluate(f"{HERE}.closest('.message').dataset.id") == asked
    assert page.evaluate(f"{HERE}.getAttribute('aria-label')") == "Like"

    page.focus("#chat-list button.current")
    page.keyboard.press("ArrowDown")
    sandbox.platform.say(sandbox.people["Bob"], sandbox.group, "you too")
    page.wait_for_selector(".chat small:has-text('you too')")
    assert page.evaluate(f"{HERE}.textContent").startswith("KKitchen")


def test_the_composer_has_the_focus_and_is_a_few_keys_away(page: Any) -> None:
    assert page.evaluate(f"{HERE}.id") == "text"
    page.focus("#skip")
    page.keyboard.press("Enter")
    assert page.evaluate(f"{HERE}.id") == "text"

    page.focus("#skip")
    stops = []
    while "text" not in stops and len(stops) < 24:
        page.keyboard.press("Tab")
        stops.append(page.evaluate(f"{HERE}.id"))
    assert stops[-1] == "text"


def test_the_arrows_lead_through_the_messages(page: Any) -> None:
    page.locator(".message").last.focus()
    last = page.evaluate(f"{HERE}.dataset.id")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(f"{HERE}.className").startswith("message")
    assert page.evaluate(f"{HERE}.dataset.id") != last
    page.keyboard.press("Tab")
    assert page.evaluate(f"{HERE}.getAttribute('aria-label')") == "Quote"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{HERE}.getAttribute('aria-label')") == "Reply in thread"


def test_a_reload_comes_back_to_chat_speaker_and_draft(page: Any) -> None:
    page.click("#chat-list button:has-text('Kitchen')")
    page.select_option("#speaker", label="陈晨")
    page.click("#text")
    page.keyboard.type("half a thou")
    page.reload()
    page.wait_for_selector("#chat-list .current:has-text('Kitchen')")

    assert page.inner_text("#chat-name") == "Kitchen"
    chosen = "document.getElementById('speaker').selectedOptions[0].text"
    assert page.evaluate(chosen) == "陈晨"
    assert page.input_value("#text") == "half a thou"


def test_a_slash_offers_the_commands_of_the_bot_and_addresses_it(
    page: Any, sandbox: Sandbox
) -> None:
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("/")
    assert page.locator("#completion li b").first.inner_text() == "/help"
    page.keyboard.type("no")
    page.wait_for_selector("#completion li")
    assert page.locator("#completion li b").all_inner_texts() == ["/notes"]
    page.keyboard.press("Enter")
    assert page.input_value("#text") == "@Memo /notes "

    page.fill("#text", "")
    page.keyboard.type("@Memo /")
    offered = page.locator("#completion li b").all_inner_texts()
    assert {"/new", "/memory", "/forget", "/quiet", "/resume", "/why", "/help"} <= set(offered)
    page.keyboard.press("Escape")
    page.fill("#text", "")
    page.keyboard.type("/help")
    page.keyboard.press("Enter")
    assert page.input_value("#text") == "@Memo /help "
    page.keyboard.press("Enter")
    page.wait_for_selector(".message:has-text('@Memo /help')")

    page.click("#language")
    page.fill("#text", "")
    page.keyboard.type("／记")
    assert page.locator("#completion li b").all_inner_texts() == ["/记忆"]


def test_in_a_private_chat_a_command_stands_alone_and_enter_sends_it(page: Any) -> None:
    page.click("#chat-list button:has(b:text-is('Bob'))")
    page.keyboard.type("/notes")
    page.keyboard.press("Enter")
    comes_into_sight(page, "/notes")
    assert page.input_value("#text") == ""


def test_a_message_is_quoted_and_edited(page: Any, sandbox: Sandbox) -> None:
    """From one to another: a thread with an answer of the bot would take the quotation in."""
    write(page, "@Bob the meetign is at nine")
    comes_into_sight(page, "@Bob the meetign is at nine")
    message = page.locator(".message:has-text('the meetign is at nine')").last
    message.hover()
    message.locator("button[aria-label=Quote]").click()
    write(page, "@Bob really?")
    comes_into_sight(page, "@Bob really?")
    page.wait_for_selector("#reply-target", state="hidden")
    assert "the meetign is at nine" in page.locator(".quoted").last.inner_text()
    page.locator(".quoted").last.click()
    page.wait_for_selector(".message.found:has-text('the meetign is at nine')")

    message.hover()
    message.locator("button[aria-label=Edit]").click()
    assert page.input_value("#text") == "@Bob the meetign is at nine"
    page.fill("#text", "@Bob the meeting is at nine")
    page.keyboard.press("Enter")
    comes_into_sight(page, "@Bob the meeting is at nine")
    edited = page.locator(".message:has-text('the meeting is at nine')").last
    assert "edited" in edited.inner_text()
    said = sandbox.platform.messages(sandbox.group)
    assert [one["updated"] for one in said if "is at nine" in one["text"]] == [True]
    page.wait_for_function("document.getElementById('text').value === ''")


def test_a_pasted_picture_waits_until_it_is_sent(page: Any) -> None:
    page.click("#text")
    page.evaluate("""() => {
      const carried = new DataTransfer();
      const bytes = Uint8Array.from(atob("R0lGODlhAQABAAAAACw="), letter => letter.charCodeAt(0));
      carried.items.add(new File([bytes], "plan.gif", {type: "image/gif"}));
      const paste = new ClipboardEvent("paste", {clipboardData: carried, cancelable: true});
      document.getElementById("text").dispatchEvent(paste);
    }""")
    assert "plan.gif" in page.inner_text("#tray")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message img.picture")
    assert page.locator("#tray").is_hidden()


def test_a_passage_of_a_document_is_commented_on_and_the_answer_comes_below(
    page: Any, sandbox: Sandbox
) -> None:
    about = {"title": "Orchard", "link": "tenant_readable", "markdown": "The pears are in row 7."}
    sandbox.platform.post("/documents", **{"as": sandbox.people["Bob"]}, **about)
    page.click("#show-shelf")
    page.locator(".document", has_text="Orchard").get_by_role("button", name="Comments").click()
    page.locator("#comment-page:not(:empty)").wait_for()
    comment_on(page, "row 7", "Alice", sandbox.bot, "where are the pears?")
    page.locator(".comment blockquote", has_text="row 7").wait_for()
    page.locator(".comment-reply", has_text="The pears are in row 7.").wait_for()
    page.get_by_role("button", name="Resolve").click()
    page.locator(".comment.solved").wait_for()
    page.get_by_role("button", name="All documents").click()
    page.locator(".document", has_text="Orchard").get_by_text("Comments (1)").wait_for()


def test_days_stand_between_messages_and_reasons_are_in_words(page: Any, sandbox: Sandbox) -> None:
    assert page.locator(".day").first.inner_text() == "Today"
    say_to(sandbox, "Alice", "Memo", "hello")
    page.wait_for_selector("#sections:has-text('it mentioned me.')")
    page.click("#language")
    page.wait_for_selector("#sections:has-text('这条消息 @ 了我。')")
    for code in ("explicit_trigger", "no_trigger", "answered:", "silent:"):
        assert code not in page.inner_text("#memory")
    assert page.locator("#links a").first.get_attribute("href") == "/console"


ALERT = {
    "header": {"title": {"tag": "plain_text", "content": "[P1] Disk full"}, "template": "red"},
    "elements": [
        {
            "tag": "div",
            "text": {"tag": "lark_md", "content": "see [wiki](https://wiki.example)"},
            "fields": [{"text": {"tag": "lark_md", "content": "[mail](mailto:a@b.example)"}}],
        },
        {"tag": "action", "actions": [
            {"tag": "button", "text": {"tag": "plain_text", "content": "Acknowledge"}},
            {"tag": "button", "text": {"tag": "plain_text", "content": "Mute"}},
        ]},
        {"tag": "note", "elements": [{"tag": "plain_text", "content": "by Pager"}]},
    ],
}  # fmt: skip


def test_the_json_of_a_card_is_posted_as_the_card_that_another_app_would_send(page: Any) -> None:
    page.fill("#text", json.dumps(ALERT))
    page.press("#text", "Enter")
    page.wait_for_selector(".card-header >> text=[P1] Disk full")
    card = page.locator(".message", has_text="[P1] Disk full").last
    assert card.locator("a").evaluate_all("all => all.map(one => one.href)") == [
        "https://wiki.example/"
    ]
    assert "mail" in card.inner_text()
    assert card.locator(".note").inner_text() == "by Pager"
    assert card.locator(".actions button").all_inner_texts() == ["Acknowledge", "Mute"]
    if SHOTS:
        card.screenshot(path=f"{SHOTS}/card_of_version_1.png")


def test_a_group_with_a_past_is_made_in_one_click_and_read_back_in_parts(
    page: Any, sandbox: Sandbox
) -> None:
    page.route("**/pasts", lambda asked: asked.continue_(post_data=json.dumps(PAST)))
    page.click("#add-past")
    page.wait_for_selector("#chat-name >> text=Harbour project")
    page.wait_for_selector(".message.system >> text=Memo")
    shown = "() => document.querySelectorAll('#message-list .message').length"
    newest = page.evaluate(shown)
    assert 100 < newest <= 210
    page.click("#earlier")
    page.wait_for_function(f"{shown} > {newest} + 100")
    page.evaluate(_KEEP_ONE_OF_EACH, EACH)
    is_sound(page, "past-en-GB-1280")
    page.reload()
    page.wait_for_selector("#message-list .message")
    assert page.text_content("#chat-name") == "Harbour project"
    assert page.evaluate(shown) <= 210
