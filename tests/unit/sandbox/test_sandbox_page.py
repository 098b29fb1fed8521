"""The page in a real browser. Skipped where there is no Chromium."""

import json
import threading

import pytest

from bot.feishu.cards import Button, CheckField, answer_card
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.server import SandboxServer
from sandbox.world.entities import SandboxEvent
from tests.support.rows import every_row

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture
def tenant(make_tenant):
    sections = [
        {"title": {"en": "Notes", "zh": "笔记"}, "rows": []},
        {"title": "Plain", "rows": []},
    ]
    return make_tenant(inspector=lambda chat_id: {"sections": sections})


@pytest.fixture
def page(tab, tenant):
    """The page of `tenant`, in English, with its people talking as the tests say."""
    server = SandboxServer(tenant.app, 0, None)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    faults = []
    listen = lambda error: faults.append(str(error))  # noqa: E731
    tab.on("pageerror", listen)
    tab.goto(f"http://127.0.0.1:{server.port}/")
    tab.wait_for_selector(".empty")
    yield tab
    tab.goto("about:blank")
    tab.remove_listener("pageerror", listen)
    server.shutdown()
    server.server_close()
    assert not faults


def test_what_others_write_appears_without_reloading_and_runs_no_script(page, tenant):
    asked = tenant.say(f"hello {HOSTILE}")
    tenant.reply_card(asked, f"**bold** {HOSTILE} [x](javascript:alert(1))", reply_in_thread=True)
    page.wait_for_selector(".thread .card strong")
    assert "<script>" in page.inner_text(".bubble")
    assert "<script>" in page.inner_text(".card")
    assert page.query_selector(".card a, .card img, .card script") is None
    assert page.title() != "owned"


def test_what_it_remembers_has_headings_in_the_language_of_the_page(page):
    page.wait_for_selector("#sections h3")
    assert page.locator("#sections h3").all_inner_texts() == ["Notes", "Plain"]
    page.click("#language")
    page.wait_for_selector("#sections h3:text('笔记')")
    assert page.locator("#sections h3").all_inner_texts() == ["笔记", "Plain"]


def test_an_at_tag_shows_the_name_and_an_escaped_one_stays_text(page, tenant):
    bob = tenant.people["Bob"]
    tenant.reply_card(tenant.say("hi"), f"<at id={bob}></at> &#60;at id=all&#62;")
    page.wait_for_selector(".card .at")
    assert page.inner_text(".card .at") == "@Bob"
    assert "<at id=all>" in page.inner_text(".card")


def test_an_answer_to_a_message_that_the_page_has_not_read_quotes_nothing(page, tenant):
    tenant.reply(tenant.say("asked"), "answered", reply_in_thread=True)
    page.wait_for_selector(".bubble:has-text('answered')")
    only_newest = lambda one: one.continue_(url=one.request.url.replace("=200", "=1"))  # noqa: E731
    page.route("**/messages?newest=200", only_newest)
    page.reload()
    page.wait_for_selector(".bubble:has-text('answered')")
    assert page.locator(".bubble").count() == 1
    assert page.locator(".quoted").count() == 0
    page.unroute_all()


@every_row(
    "markdown, drawn",
    [
        ("# a\n\n- b", ["h1", "ul > li"]),
        ("a\n===\nb", ["h1", "p"]),
        ("a\n---\nb", ["h2", "p"]),
        ("a\n\n---\n\nb", ["p", "hr", "p ~ hr ~ p"]),
        ("1. a\n    - b\n        - c\n2. d", ["ol > li > ul > li > ul > li", "ol > li + li"]),
        ("    a\n    b", ["pre > code"]),
        ("> a\n> ```\n> b\n> ```", ["blockquote > .markdown > pre"]),
        ("1. a\n```sh\nb\n```\n2. c", ["ol", "pre[data-language=sh]", "ol[start='2']"]),
        ("a\n7. b", ["p > br"]),
        ("a\n1. b", ["p", "ol"]),
    ],
)
def test_blocks_are_drawn_as_commonmark_has_them(page, tenant, markdown, drawn):
    tenant.clock.now += 1
    sent = tenant.reply_card(tenant.say("hi"), markdown).json["data"]["message_id"]
    card = f"[data-id={sent}] .card .markdown"
    page.wait_for_selector(card)
    for selector in drawn:
        assert page.query_selector(f"{card} > {selector}"), page.inner_html(card)


def test_a_table_shows_five_rows_at_a_time(page, tenant):
    rows = "".join(f"| {number} |\n" for number in range(7))
    tenant.reply_card(tenant.say("hi"), f"| n |\n|---|\n{rows}")
    page.wait_for_selector(".pager")
    assert page.inner_text(".card tbody").split() == ["0", "1", "2", "3", "4"]
    page.click("text=›")
    assert page.inner_text(".card tbody").split() == ["5", "6"]


def test_a_person_writes_with_a_completed_mention_in_the_chosen_voice(page, tenant):
    page.select_option("#speaker", label="陈晨")
    page.click("#text")
    page.keyboard.type("@me")
    page.wait_for_selector("#completion li")
    page.keyboard.press("Enter")
    page.keyboard.type("hello")
    page.keyboard.press("Enter")
    page.wait_for_selector(".bubble .at")
    (message,) = tenant.control("GET", "messages")["items"]
    assert (message["sender"]["name"], message["text"]) == ("陈晨", "@Memo hello")
    assert message["mentions"][0]["open_id"] == tenant.bot


def test_a_streaming_card_says_so_until_it_is_closed(page, tenant):
    element = {"tag": "markdown", "element_id": "answer", "content": "…"}
    body = {"schema": "2.0", "config": {"streaming_mode": True}, "body": {"elements": [element]}}
    made = tenant.call(
        "POST", "/cardkit/v1/cards", {"type": "card_json", "data": json.dumps(body)}
    ).json["data"]["card_id"]
    content = json.dumps({"type": "card", "data": {"card_id": made}})
    reply = {"msg_type": "interactive", "content": content}
    tenant.call("POST", f"/im/v1/messages/{tenant.say('hi')}/reply", reply)
    page.wait_for_selector(".generating")
    path = f"/cardkit/v1/cards/{made}"
    tenant.call("PUT", f"{path}/elements/answer/content", {"content": "done", "sequence": 1})
    settings = {"settings": '{"config":{"streaming_mode":false}}', "sequence": 2}
    tenant.call("PATCH", f"{path}/settings", settings)
    page.wait_for_selector(".generating", state="detached")
    assert page.inner_text(".card") == "done"


def test_a_pressed_button_shows_the_toast(page, tenant):
    button = {
        "tag": "button",
        "text": {"tag": "plain_text", "content": "Press"},
        "behaviors": [{"type": "callback", "value": {"n": 1}}],
    }
    card = {"schema": "2.0", "body": {"elements": [button]}}
    body = {"msg_type": "interactive", "content": json.dumps(card)}
    tenant.call("POST", f"/im/v1/messages/{tenant.say('hi')}/reply", body)
    tenant.receiver.answer = {"toast": {"type": "success", "content": "Thanks"}}
    page.click("text=Press")
    page.wait_for_selector("#toast:not([hidden])")
    assert page.inner_text("#toast") == "Thanks"


def test_checkboxes_of_a_form_are_submitted_as_they_stand(page, tenant):
    checks = tuple(CheckField(f"item_{n}", "Delete", n != 3, n) for n in (3, 2, 1))
    button = Button("Go", {"n": 1}, fields=checks)
    card = answer_card("These?\n\n**1.** tea\n\n**2.** milk\n\n**3.** rye", buttons=(button,))
    body = {"msg_type": "interactive", "content": json.dumps(card)}
    tenant.call("POST", f"/im/v1/messages/{tenant.say('hi')}/reply", body)
    tenant.receiver.answer = {"toast": {"type": "success", "content": "Thanks"}}
    page.uncheck(".columns:has-text('milk') [type=checkbox]")
    page.click("text=Go")
    page.wait_for_selector("#toast:not([hidden])")
    action = tenant.receiver.events[-1]["event"]["action"]
    assert action["form_value"] == {"item_3": False, "item_2": False, "item_1": True}


@pytest.mark.parametrize(
    ("offline", "locale", "said"),
    [(True, "en-GB", "Offline model"), (True, "zh-CN", "离线模型"), (False, "en-GB", "")],
)
def test_the_page_says_once_that_no_language_model_answers(browser, offline, locale, said):
    server = SandboxServer(create_sandbox(SandboxConfig(offline_model=offline)), 0, None)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    opened = browser.new_page(locale=locale)
    opened.goto(f"http://127.0.0.1:{server.port}/")
    opened.wait_for_selector(".empty")
    notice = opened.locator("#offline-model")
    assert notice.is_visible() is offline
    if offline:
        assert opened.inner_text("body").count(said) == 1
    opened.close()
    server.shutdown()
    server.server_close()


def test_a_card_for_one_person_is_shown_while_one_speaks_as_them_until_it_is_taken_away(
    page, tenant
):
    card = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "psst"}]}}
    shown = {"chat_id": tenant.group, "open_id": tenant.people["Alice"]}
    page.select_option("#speaker", label="Bob")
    sent = tenant.call(
        "POST", "/ephemeral/v1/send", {**shown, "msg_type": "interactive", "card": card}
    )
    tenant.say("hello", speaker="Bob")
    page.wait_for_selector(".bubble")
    assert "psst" not in page.inner_text("body")

    page.select_option("#speaker", label="Alice")
    page.wait_for_selector(".card")
    assert page.inner_text(".only-you") == "Only visible to you"
    message_id = sent.json["data"]["message_id"]
    assert page.query_selector(f"[data-id={message_id}] .toolbar") is None

    tenant.call("POST", "/ephemeral/v1/delete", {"message_id": message_id})
    page.wait_for_selector(".card", state="detached")
    assert "psst" not in page.inner_text("body")


def test_a_file_is_attached_and_shown_as_something_to_save(page, tenant, tmp_path):
    chosen = tmp_path / "库存.html"
    chosen.write_text("<script>document.title='owned'</script>")
    page.set_input_files("#file", chosen)
    page.wait_for_selector("a.file")

    assert page.inner_text("a.file") == "库存.html"
    with page.expect_download() as saved:
        page.click("a.file")
    assert saved.value.suggested_filename == "库存.html"
    (sent,) = [m for m in tenant.control("GET", "messages")["items"] if m["msg_type"] == "file"]
    key = json.loads(sent["content"])["file_key"]
    answer = tenant.http.get(f"/sandbox/api/resources/{key}")
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''%E5")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.content_type == "application/octet-stream"


def test_a_scope_is_withheld_and_granted_in_the_page(page, tenant):
    granted = tenant.platform.world.console.granted
    page.click("#show-platform")
    page.wait_for_selector("#platform[open] [name='im:message.group_msg']")
    assert page.is_checked("[name='im:message.group_msg']")
    with page.expect_response("**/switches"):
        page.uncheck("[name='im:message.group_msg']")
    assert "im:message.group_msg" not in granted
    with page.expect_response("**/switches"):
        page.check("[name=secret_chats]")
    assert tenant.platform.world.switches.secret_chats
    page.click("#hide-platform")
    page.click("#show-platform")
    page.wait_for_selector("#platform[open]")
    assert not page.is_checked("[name='im:message.group_msg']")
    with page.expect_response("**/switches"):
        page.check("[name='im:message.group_msg']")
    assert "im:message.group_msg" in granted


def test_documents_are_written_shared_and_deleted_in_the_page(page, tenant):
    page.click("#show-shelf")
    page.fill("#shelf-name", "Plan <b>")
    page.fill("#shelf-text", "# Plan")
    page.select_option("#shelf-owner", label="Bob")
    page.click("#shelf-form button")
    page.wait_for_selector(".document:has-text('Can read: Bob')")
    page.select_option(".document select >> nth=0", "tenant_readable")
    page.wait_for_selector(".document:has-text('Alice, Bob')")
    page.select_option(".document select >> nth=0", "closed")
    page.wait_for_selector(".document:has-text('Can read: Bob')")
    page.select_option(".document select >> nth=1", label="Kitchen")
    page.wait_for_selector(".document:has-text('Alice, Bob')")
    (plan,) = tenant.control("GET", "documents")["items"]
    assert (plan["title"], plan["groups"]) == ("Plan <b>", ["Kitchen"])
    page.click(".document button >> nth=-1")
    page.wait_for_selector(".document.gone")


def test_calendars_and_tasks_are_shown_and_an_event_is_written_in_the_page(page, tenant):
    task = {"as": tenant.people["Bob"], "summary": "slides <b>", "due": "2026-12-04"}
    tenant.control("POST", "agendas/tasks", task)
    page.click("#show-agendas")
    page.wait_for_selector("#agendas li:has-text('☑ slides <b>')")
    page.fill("#agendas-name", "launch")
    page.fill("#agendas-start", "2026-12-03T15:00")
    page.select_option("#agendas-owner", label="Alice")
    page.click("#agendas-form button")
    page.wait_for_selector("#agendas li:has-text('📅 launch')")
    alice = next(one for one in tenant.control("GET", "agendas")["items"] if one["name"] == "Alice")
    start, end = (int(alice["events"][0][name]["timestamp"]) for name in ("start_time", "end_time"))
    assert end - start == 3600
    fair = SandboxEvent("", alice["open_id"], "fair", 1796342400, 1796515200, all_day=True)
    tenant.platform.agendas.make_event(fair)
    page.click("#hide-agendas")
    page.click("#show-agendas")
    page.wait_for_selector("#agendas li:has-text('📅 fair 4 Dec 2026–5 Dec 2026 · Alice')")
