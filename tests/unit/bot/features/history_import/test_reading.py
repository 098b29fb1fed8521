"""What is kept of a page of Feishu's list."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.features.history_import.reading import (
    LONGEST,
    Source,
    author_ids,
    forward_ids,
    names_in,
    read_page,
)
from bot.feishu.models import RawMessage, raw_message
from memory.tables.imports import ImportedMessage, MembershipNotice, Page

CHAT = Source("oc_1", "cli_bot")
THREAD = replace(CHAT, in_thread=True)
AT_MS = 1_700_000_000_000


def message(message_id: str = "om_1", text: str = "hello", **fields: Any) -> RawMessage:
    content = fields.pop("content", {"text": text})
    sender = {"id": "ou_ann", "id_type": "open_id", "sender_type": "user"}
    item = {
        "message_id": message_id,
        "msg_type": "text",
        "create_time": str(AT_MS),
        "chat_id": "oc_1",
        "sender": {**sender, **fields.pop("sender", {})},
        "body": {"content": json.dumps(content, ensure_ascii=False)},
        **fields,
    }
    return raw_message(item)


def app(app_id: str, **fields: Any) -> dict[str, Any]:
    return {"sender": {"id": app_id, "id_type": "app_id", "sender_type": "app", **fields}}


def read(*messages: RawMessage, source: Source = CHAT, **names: str) -> Page:
    return read_page(messages, source, {"ou_ann": "Ann"} | names, {}, "")


def texts(page: Page) -> list[str]:
    return [one.content for one in page.messages]


def test_a_message_is_kept_with_its_author_and_time():
    assert read(message()) == Page(
        (ImportedMessage("om_1", "", "ou_ann", "Ann", AT_MS, "hello"),),
    )


def test_everything_that_says_something_is_kept():
    mention = {"key": "@_user_1", "id": "ou_bo", "id_type": "open_id", "name": "Bo"}
    card_1 = {"elements": [{"tag": "div", "text": {"tag": "lark_md", "content": "CPU at 95%"}}]}
    card_2 = {
        "schema": "2.0",
        "body": {"elements": [{"tag": "markdown", "content": "Deployed **3.1**"}]},
    }
    post = {"title": "Plan", "content": [[{"tag": "text", "text": "Ship it"}]]}
    page = read(
        message("om_1", "@_user_1 look", mentions=[mention]),
        message("om_2", msg_type="post", content=post),
        message("om_3", msg_type="interactive", content=card_1, **app("cli_alerts")),
        message("om_4", msg_type="interactive", content={"user_dsl": json.dumps(card_2)}),
        message("om_5", msg_type="file", content={"file_name": "budget.xlsx", "file_key": "f"}),
        message("om_6", msg_type="location", content={"name": "HQ"}),
    )
    assert texts(page) == [
        "@Bo look",
        "**Plan**\nShip it",
        "CPU at 95%",
        "Deployed **3.1**",
        "[file: budget.xlsx]",
        "[location: HQ]",
    ]
    assert page.counts == {}


def test_what_is_not_kept_is_counted_by_kind():
    page = read(
        message("om_1", deleted=True, content="This message was recalled"),
        message("om_2", msg_type="interactive", content={}, **app("cli_bot")),
        message("om_3", msg_type="image", content={"image_key": "img_1"}),
        message("om_4", msg_type="sticker", content={"file_key": "f"}),
        message("om_5", msg_type="post", content={"content": [[{"tag": "img", "image_key": "i"}]]}),
        message("om_6", msg_type="unheard_of", content={"x": 1}),
        message("", "no id"),
        message("om_8", "of another chat", chat_id="oc_2"),
        message("om_9", msg_type="system", content={"template": " "}),
    )
    assert page.messages == ()
    assert page.counts == {
        "deleted": 1, "own": 1, "without_text": 4, "unreadable": 2, "system": 1,
    }  # fmt: skip


def test_people_may_write_what_looks_like_a_label():
    assert texts(read(message(text="[image]"))) == ["[image]"]


def test_only_a_thread_is_a_thread():
    quote = message("om_2", root_id="om_0", parent_id="om_0")
    first = message("om_3", thread_id="omt_1")
    answer = message("om_4", root_id="om_3", parent_id="om_3", thread_id="omt_1")
    page = read(quote, first, answer)
    assert [one.root_id for one in page.messages] == ["", "om_3", "om_3"]
    assert page.threads == ("omt_1",)


def test_a_thread_is_read_also_where_its_first_message_is_gone_or_ours():
    gone = message("om_1", deleted=True, thread_id="omt_1", content="recalled")
    ours = message("om_2", thread_id="omt_2", **app("cli_bot"))
    assert read(gone, ours).threads == ("omt_1", "omt_2")


def test_a_chat_of_topics_lists_its_replies_itself():
    page = read(
        message("om_1", thread_id="omt_1"),
        message("om_2", root_id="om_1"),
        source=replace(CHAT, topics=True),
    )
    assert [one.root_id for one in page.messages] == ["om_1", "om_1"]
    assert page.threads == ()


def test_the_first_message_of_a_thread_is_counted_once():
    first = message("om_1", deleted=True, thread_id="omt_1", content="recalled")
    reply = replace(first, message_id="om_2", root_id="om_1")
    assert read(first, reply, source=THREAD).counts == {"deleted": 1}
    assert read(first, reply, source=THREAD).threads == ()


def test_messages_of_the_system_say_who_joined():
    content = {"template": "{from_user} invited {to_chatters} to this chat.", "to_chatters": ["Bo"]}
    page = read(message(msg_type="system", content=content))
    assert page.memberships == (MembershipNotice("Bo", AT_MS, joined=True),)


def test_names_come_with_the_messages():
    mention = {"key": "@_user_1", "id": "ou_bo", "id_type": "open_id", "name": "Bo"}
    alerts = message("om_2", **app("cli_alerts", sender_name="Alerts"))
    messages = [message("om_1", mentions=[mention]), alerts]
    assert names_in(messages) == {"ou_bo": "Bo", "cli_alerts": "Alerts"}
    assert author_ids(messages) == ("ou_ann",)
    assert read(alerts, cli_alerts="Alerts").messages[0].author_name == "Alerts"


def test_forwards_are_read_for_what_they_hold():
    forward = message("om_1", msg_type="merge_forward", content="Merged and Forwarded Message")
    assert forward_ids([forward, message("om_2")], CHAT) == ("om_1",)
    page = read_page([forward], CHAT, {}, {"om_1": "Bo: the key is 7"}, "next")
    assert texts(page) == ["Bo: the key is 7"]
    assert page.next_position == "next"
    assert read(forward).counts == {"without_text": 1}


def test_a_long_text_is_cut_and_what_postgres_cannot_keep_is_left_out():
    page = read(message(text="a\x00" + "长" * 40_000))
    assert texts(page) == ["a" + "长" * (LONGEST - 1)]


@given(
    st.dictionaries(
        st.sampled_from(
            ["message_id", "msg_type", "create_time", "chat_id", "sender", "body", "mentions",
             "thread_id", "root_id", "deleted"]
        ),
        st.none() | st.text(max_size=20) | st.integers() | st.lists(st.text(max_size=3), max_size=2)
        | st.dictionaries(st.sampled_from(["content", "id", "sender_type"]), st.text(max_size=20)),
    )
)  # fmt: skip
def test_no_answer_of_feishus_raises(item):
    page = read(raw_message(item))
    assert len(page.messages) + sum(page.counts.values()) == 1
