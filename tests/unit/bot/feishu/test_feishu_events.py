"""Parsing of pushed events: every stored payload, every documented shape, and anything else."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.feishu.content import render_content
from bot.feishu.events import (
    CARD_ACTION,
    MESSAGE_RECALLED,
    MESSAGE_RECEIVED,
    CardAction,
    MalformedEvent,
    MessageEvent,
    RetractedMessage,
    is_url_verification,
    parse_card_action,
    parse_delivery,
    parse_envelope,
    parse_message,
    parse_retraction,
    question_text,
    storable_push,
)
from bot.feishu.fields import milliseconds
from bot.listening.turn_request import TurnRequest
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "feishu"
BOT = "ou_e6e14f667cfe239d7b129b521dce0569"
ZHANG = "ou_7d8a6e6df7621556ce0d21922b676706"
PUSHED = sorted(
    path.stem
    for pattern in ("receive_*", "event_*", "callback_*", "webhook_*")
    for path in DATA.glob(f"{pattern}.json")
    if path.stem != "callback_card_response_toast_and_card"
)


def payload(name: str) -> Any:
    loaded = json.loads((DATA / f"{name}.json").read_text())
    return loaded.get("plaintext", loaded)


def message(name: str) -> MessageEvent:
    return parse_message(parse_envelope(payload(name)))


def parse_any(pushed: object) -> MessageEvent | CardAction | RetractedMessage | None:
    envelope = parse_envelope(pushed)
    parse_delivery(pushed)
    parser = {
        MESSAGE_RECEIVED: parse_message,
        MESSAGE_RECALLED: parse_retraction,
        CARD_ACTION: parse_card_action,
    }.get(envelope.event_type)
    return parser(envelope) if parser else None


def text_message(text: str, mentions: list[dict[str, Any]] | None = None, **extra: Any) -> Any:
    pushed = payload("receive_p2p_text")
    pushed["event"]["message"] |= {"content": json.dumps({"text": text}), **extra}
    if mentions is not None:
        pushed["event"]["message"]["mentions"] = mentions
    return pushed


def mention(key: str, open_id: str, name: str) -> dict[str, Any]:
    return {"key": key, "id": {"open_id": open_id}, "name": name}


@every_row("name", PUSHED)
def test_every_stored_payload_is_parsed(name):
    pushed = payload(name)
    if is_url_verification(pushed):
        return
    parse_any(pushed)


def test_a_mention_of_the_bot_is_seen_by_open_id_and_taken_off_the_question():
    event = message("receive_group_text_at_bot")
    assert TurnRequest.of(event).is_for(BOT)
    assert not TurnRequest.of(event).is_for(ZHANG)
    assert not TurnRequest.of(event).is_for("")
    assert event.text == "@MemoBot hello"
    assert question_text(event, BOT) == "hello"
    assert question_text(event, "") == "@MemoBot hello"


def test_other_people_stay_in_the_question_as_names():
    event = message("receive_group_text_at_bot_and_users")
    expected = "remember that @张三 owns @Tom's launch on Friday"
    assert question_text(event, BOT) == expected
    assert [m.is_bot for m in event.mentions] == [True, False, False]


def test_only_a_mention_leaves_an_empty_question():
    assert question_text(message("receive_group_text_only_mention_empty_body"), BOT) == ""


def test_a_name_that_looks_like_a_key_is_not_replaced_again():
    mentions = [mention("@_user_1", "ou_1", "@_user_2"), mention("@_user_2", "ou_2", "Eve")]
    event = parse_message(parse_envelope(text_message("@_user_1 hi", mentions)))
    assert event.text == "@@_user_2 hi"


def test_a_person_named_like_the_bot_is_not_the_bot():
    mentions = [mention("@_user_1", ZHANG, "MemoBot"), mention("@_user_2", BOT, "MemoBot")]
    event = parse_message(parse_envelope(text_message("@_user_2, @_user_1 hi", mentions)))
    assert question_text(event, BOT) == "@MemoBot hi"


def test_repeated_leading_mentions_of_the_bot_all_go_but_later_ones_stay():
    mentions = [mention(f"@_user_{n}", BOT, "MemoBot") for n in (1, 2, 3)]
    event = parse_message(
        parse_envelope(text_message("  @_user_1，@_user_2 ask @_user_3", mentions))
    )
    assert question_text(event, BOT) == "ask @MemoBot"


@every_row(
    "name",
    ["receive_group_text_at_all_mentions_empty", "receive_group_text_at_all_mentions_present"],
)
def test_at_all_is_recognised_and_is_not_a_mention_of_the_bot(name):
    event = message(name)
    assert event.mentions_all
    assert not TurnRequest.of(event).is_for(BOT)
    assert event.text.startswith("@all ")


def test_a_flat_post_becomes_markdown():
    event = message("receive_group_post_flat")
    assert event.text == (
        "**周会纪要**\n**负责人:** @张三 [链接](https://www.feishu.cn)\n"
        "![image](img_47354fbc-a159-40ed-86ab-2ad0f1acb42g)\n@MemoBot 记住这个:SMILE:\n"
        "```python\nprint(1)\n```\n---"
    )
    assert [(a.kind, a.key) for a in event.attachments] == [
        ("image", "img_47354fbc-a159-40ed-86ab-2ad0f1acb42g")
    ]


def test_a_post_prefers_its_markdown_version():
    assert message("receive_group_post_content_v2_md").text.startswith("## Heading\n- item")


def test_a_wrapped_post_and_its_markdown_mentions_are_read():
    post = {
        "zh_cn": {
            "title": "",
            "content": [[{"tag": "md", "text": '<at user_id="@_user_1">x</at> hi'}]],
        }
    }
    assert render_content("post", json.dumps(post)).template == "@_user_1 hi"


def test_a_task_says_when_it_is_due() -> None:
    summary = {"title": "", "content": [[{"tag": "text", "text": "book the ferry"}]]}
    for due, says in (("1623124318000", ", due 2021-06-08 03:51 UTC"), ("0", ""), ("soon", "")):
        content = json.dumps({"summary": summary, "due_time": due})
        assert render_content("todo", content).template == f"[task: book the ferry{says}]"


@every_row(
    ("name", "text", "keys"),
    [
        ("receive_group_image", "[image]", 1),
        ("receive_p2p_file", "[file: 预算 2026.xlsx]", 1),
        ("receive_p2p_folder", "[folder: folder]", 1),
        ("receive_p2p_audio", "[voice message]", 1),
        ("receive_group_media_video", "[video: clip.mp4]", 1),
        ("receive_p2p_sticker", "[sticker]", 1),
        ("receive_merge_forward_json_content", "[forwarded messages]", 0),
        ("receive_merge_forward_plain_string", "[forwarded messages]", 0),
        ("receive_group_share_chat", "[shared group]", 0),
        ("receive_group_share_user", "[shared contact]", 0),
        (
            "receive_group_share_calendar_event",
            "[calendar event: 日程分享测试, 2020-12-18 04:23 UTC – 2020-12-18 04:50 UTC]",
            0,
        ),
        ("receive_group_location", "[location: 北京市海淀区]", 0),
        ("receive_group_video_chat", "[video call: 周会]", 0),
        ("receive_group_system", "botName invited 小明, 小王 to this chat.", 0),
    ],
)
def test_other_message_types_get_a_short_description(name, text, keys):
    event = message(name)
    assert event.text == text
    assert len(event.attachments) == keys


def test_an_unknown_type_keeps_its_type_and_has_no_text():
    event = parse_message(parse_envelope(text_message("x", message_type="hologram")))
    assert (event.text, event.message_type) == ("", "hologram")


@every_row("content", ["This message was recalled", "[" * 100_000, "", None, 7, "[]"])
def test_content_that_is_no_json_object_gives_no_text(content):
    pushed = text_message("x", content=content)
    assert parse_message(parse_envelope(pushed)).text == ""


def test_what_postgres_cannot_store_is_taken_out():
    event = parse_message(parse_envelope(text_message("a\x00b\ud800c")))
    assert event.text == "ab?c"


def test_thread_ids_are_kept():
    event = message("receive_group_reply_in_thread")
    assert event.root_id == event.parent_id == "om_40eb06e7b84dc71c03e009ad3c754195"
    assert event.thread_id == "omt_d4be107c616aed9c"


def test_what_an_external_sender_writes_is_of_the_bots_tenant_and_they_of_their_own():
    external = message("receive_group_text_external_tenant_sender")
    assert (external.tenant_key, external.sender_tenant) == ("736588c9260f175e", "2df73991750ffff1")


def test_another_bot_is_a_bot():
    assert message("receive_group_from_other_bot_at_us").sender_type == "bot"


def test_the_same_message_under_two_event_ids_has_one_key():
    first = parse_envelope(payload("receive_duplicate_a"))
    second = parse_envelope(payload("receive_duplicate_b_same_message_other_event_id"))
    assert first.event_id != second.event_id
    keys = [
        parse_delivery(payload(name)).key
        for name in ("receive_duplicate_a", "receive_duplicate_b_same_message_other_event_id")
    ]
    assert keys == [f"message:{parse_message(first).message_id}"] * 2


def test_other_events_are_told_apart_by_event_id():
    envelope = parse_envelope(payload("event_im_message_recalled_v1"))
    delivery = parse_delivery(payload("event_im_message_recalled_v1"))
    assert delivery.key == f"event:{envelope.event_id}"


def test_a_recall_names_its_message():
    recall = parse_retraction(parse_envelope(payload("event_im_message_recalled_v1")))
    assert recall == RetractedMessage(
        "om_dc13264520392913993dd051dba21dcf", "oc_5ad11d72b830411d72b836c20"
    )


@every_row(
    ("name", "value"),
    [
        ("callback_card_button", {"action": "forget", "memory_id": "m_123"}),
        ("callback_card_button_string_value", "forget"),
        ("callback_card_select_option", {"k": "v"}),
    ],
)
def test_a_click_keeps_its_value_whether_object_or_text(name, value):
    action = parse_card_action(parse_envelope(payload(name)))
    assert action.value == value
    assert action.operator_open_id == "ou_84aad35d084aa403a838cf73ee18467"
    assert action.open_message_id.startswith("om_")
    assert action.create_time_ms == 1603977298000


def test_a_form_brings_its_fields():
    action = parse_card_action(parse_envelope(payload("callback_card_form_submit")))
    assert action.form_value["note"] == "free text"


def test_a_click_without_operator_or_context_is_still_read():
    pushed = payload("callback_card_button")
    del pushed["event"]["operator"], pushed["event"]["context"]
    action = parse_card_action(parse_envelope(pushed))
    assert (action.operator_open_id, action.open_chat_id) == ("", "")


def test_the_consoles_address_check_is_recognised():
    assert is_url_verification(payload("callback_url_verification"))
    assert is_url_verification(payload("webhook_encrypted_url_verification"))
    assert not is_url_verification(payload("receive_p2p_text"))
    assert not is_url_verification(["url_verification"])


def test_an_envelope_of_the_first_schema_is_read():
    old = {"uuid": "u1", "token": "t", "ts": "1602132429.37", "event": {"type": "message"}}
    envelope = parse_envelope(old)
    assert (envelope.event_id, envelope.event_type) == ("u1", "message")
    assert envelope.create_time_ms == 1602132429000


@every_row("missing", ["event_id", "event_type"])
def test_an_envelope_without_its_ids_is_malformed(missing):
    pushed = payload("receive_p2p_text")
    del pushed["header"][missing]
    with pytest.raises(MalformedEvent, match=missing):
        parse_envelope(pushed)


@every_row("missing", ["message_id", "chat_id"])
def test_a_message_without_its_ids_is_malformed(missing):
    pushed = payload("receive_p2p_text")
    del pushed["event"]["message"][missing]
    with pytest.raises(MalformedEvent, match=missing):
        parse_message(parse_envelope(pushed))


@every_row(
    ("value", "expected"),
    [
        ("1609296809", 1609296809000),
        ("1609073151345", 1609073151345),
        ("1603977298000000", 1603977298000),
        (1609073151345, 1609073151345),
        ("", 0),
        (None, 0),
        ("²", 0),
        ("9" * 5000, 0),
        (-1, 0),
    ],
)
def test_times_come_out_in_milliseconds(value, expected):
    assert milliseconds(value) == expected


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(anything)
def test_any_json_is_parsed_or_malformed(value):
    is_url_verification(value)
    try:
        parse_any(value)
    except MalformedEvent:
        return


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(PUSHED),
    st.lists(st.integers(0, 200), min_size=1, max_size=4),
    anything,
)
def test_a_real_payload_with_any_part_replaced_is_parsed_or_malformed(name, path, value):
    pushed = payload(name)
    node: Any = pushed
    for step in path:
        if not isinstance(node, dict) or not node:
            break
        key = sorted(node)[step % len(node)]
        if step == path[-1] or not isinstance(node[key], dict):
            node[key] = value
            break
        node = node[key]
    try:
        event = parse_any(pushed)
    except MalformedEvent:
        return
    if isinstance(event, MessageEvent):
        question_text(event, BOT)


@given(
    st.sampled_from(
        ["text", "post", "interactive", "image", "file", "audio", "media", "system", "todo", "vote"]
    ),
    anything,
)
def test_any_content_of_any_type_is_rendered(message_type, content):
    render_content(message_type, json.dumps(content))
    render_content(message_type, json.dumps({"content": [[content]], "elements": [[content]]}))


@every_row(
    ("content", "stops"),
    [
        ('{"text":"@_user_1 /stop"}', True),
        ('{"text": "/Stop."}', True),
        ('{"text":"@_user_1 @_user_2 ／停止"}', True),
        ('{"text":"@_user_1  /\\u505c"}', True),
        ('{"text":"/停 @_user_1"}', True),
        ('{"text":"@_user_1 what does /stop do?"}', False),
        ('{"text":"@_user_1 /stop the launch"}', False),
        ('{"text":"@_user_1/stop"}', True),
        ('{"text":"@_user_1\\/stop"}', True),
        ('{"text":"@_user_12stop"}', True),
        ('{"text":"@_user_1停一下"}', True),
        ('{"text":"/停止@_user_1"}', True),
        ('{"text":"@_user_1，@_user_2停"}', True),
        ('{"text":"@_user_1/stopping"}', False),
        ('{"text":"@_user_19:00 /stop"}', False),
        ('{"text":"stop"}', True),
        ('{"text":"@_user_1 Please  stop!"}', True),
        ('{"text":"停一下。"}', True),
        ('{"text":"@_user_1停止！"}', True),
        ('{"text":"\\u4e0d\\u7528\\u4e86"}', True),
        ('{"text":"stop by my desk"}', False),
        ('{"text":"停车"}', False),
        ('{"text":"停一下车"}', False),
        ('{"text":"不用了吧"}', False),
        ('{"text":"' + "@_user_1 " * 20_000 + 'x"}', False),
    ],
)
def test_the_edge_sees_what_may_end_an_answer(content: str, stops: bool) -> None:
    payload = {
        "header": {"event_id": "e", "event_type": MESSAGE_RECEIVED},
        "event": {"message": {"message_id": "om", "chat_id": "oc", "content": content}},
    }
    assert parse_delivery(payload).stops is stops


def test_the_edge_sees_a_stop_in_rich_text_too() -> None:
    line = [{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": "/stop"}]
    content = json.dumps({"title": "", "content": [line]})
    pushed = text_message("", message_type="post", content=content)
    assert parse_delivery(pushed).stops


@every_row("number", [1, 2**70])
def test_what_is_kept_of_a_push_is_what_postgres_takes(number: int) -> None:
    header = {"event_id": "e", "token": "secret"}
    said = {"text": "a\x00b\ud800c", "key\x00": ["\x00", "a\\u0000"], "number": number}
    assert storable_push({"token": "secret", "header": header, "event": said}) == {
        "header": {"event_id": "e"},
        "event": {"text": "ab?c", "key": ["", "a\\u0000"], "number": number},
    }


def test_what_is_kept_of_an_ordinary_push_is_unchanged() -> None:
    kept = {"header": {"event_id": "e"}, "event": {"text": "好 a\\u0000 😀", "n": [1, None, 1.5]}}
    assert storable_push(kept) == kept
