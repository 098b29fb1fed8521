"""Mention keys are read as `mentions[]` lists them, whatever stands around them."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.events import MessageEvent, parse_envelope, parse_message, question_text
from bot.feishu.fields import Mention, render_mentions
from bot.feishu.models import message_text, raw_message
from tests.support.rows import every_row

BOT = "ou_bot"


def mention(number: int, name: str = "") -> Mention:
    name = name or f"N{number}"
    return Mention(f"@_user_{number}", f"ou_{number}", name, is_bot=False, tenant_key="")


def received(text: str, mentions: dict[str, tuple[str, str]], kind: str = "text") -> MessageEvent:
    """An event; `mentions` are (open_id, name) by key."""
    listed = [
        {"key": key, "id": {"open_id": open_id}, "name": name}
        for key, (open_id, name) in mentions.items()
    ]
    message = {
        "message_id": "om_1",
        "chat_id": "oc_1",
        "message_type": kind,
        "content": text,
        "mentions": listed,
    }
    header = {"event_id": "e", "event_type": "im.message.receive_v1"}
    return parse_message(parse_envelope({"header": header, "event": {"message": message}}))


def text(words: str) -> str:
    return json.dumps({"text": words})


@every_row(
    ("template", "numbers", "expected"),
    [
        ("@_user_19:00 standup", [1], "@N1 9:00 standup"),
        ("@_user_1hello", [1], "@N1 hello"),
        ("@_user_1/stop", [1], "@N1/stop"),
        ("@_user_12 and @_user_1", [1, 12], "@N12 and @N1"),
        ("@_user_12", [1], "@N1 2"),
        ("@_user_123", [1, 12], "@N12 3"),
        ("@_user_1@_user_2", [1, 2], "@N1 @N2"),
        ("ask@_user_1", [1], "ask @N1"),
        ("（@_user_1）", [1], "（@N1）"),
        ("@_user_1，你好", [1], "@N1，你好"),
        ("@_user_1_x", [1], "@N1 _x"),
        ("@_user_2 hi", [1], "@_user_2 hi"),
        ("@_user_ hi @_user", [1], "@_user_ hi @_user"),
        ("@_all开会", [], "@all 开会"),
        ("@_allowed", [], "@_allowed"),
    ],
)
def test_a_key_is_read_though_text_follows_it(
    template: str, numbers: list[int], expected: str
) -> None:
    assert render_mentions(template, [mention(number) for number in numbers]) == expected


def test_a_listed_key_of_everybody_needs_no_space_after_it() -> None:
    everybody = Mention("@_all", "", "", is_bot=False, tenant_key="")
    assert render_mentions("@_allhands", [everybody]) == "@all hands"


def test_who_is_mentioned_without_a_name_is_somebody() -> None:
    nameless = Mention("@_user_1", "ou_1", "", is_bot=False, tenant_key="")
    assert render_mentions("@_user_1 hi", [nameless]) == "@someone hi"


@every_row(
    ("words", "question"),
    [
        ("@_user_19:00 standup", "9:00 standup"),
        ("@_user_1hello", "hello"),
        ("@_user_1/stop", "/stop"),
        ("@_user_1停", "停"),
        ("@_user_1@_user_2hello", "@Bob hello"),
        ("@_user_12 hello", "@Eve hello"),
    ],
)
def test_the_bots_own_key_is_taken_off_a_question_that_touches_it(
    words: str, question: str
) -> None:
    people = {
        "@_user_1": (BOT, "Memo"),
        "@_user_2": ("ou_bob", "Bob"),
        "@_user_12": ("ou_eve", "Eve"),
    }
    assert question_text(received(text(words), people), BOT) == question


def test_keys_are_read_alike_in_events_history_rich_text_and_cards() -> None:
    people = {"@_user_1": ("ou_bob", "Bob")}
    words = "@_user_19:00 standup"
    at = {"tag": "at", "user_id": "@_user_1"}
    post = {"title": "", "content": [[at, {"tag": "text", "text": "9:00 standup"}]]}
    markdown = {"title": "", "content_v2": [[{"tag": "md", "text": words}]]}
    shown = {"elements": [[at, {"tag": "text", "text": "9:00 standup"}]]}
    for kind, content in (
        ("text", {"text": words}),
        ("post", post),
        ("post", markdown),
        ("interactive", shown),
    ):
        raw = raw_message(
            {
                "msg_type": kind,
                "body": {"content": json.dumps(content)},
                "mentions": [
                    {"key": "@_user_1", "id": "ou_bob", "id_type": "open_id", "name": "Bob"}
                ],
            }
        )
        assert message_text(raw, {}) == "@Bob 9:00 standup"
        assert received(json.dumps(content), people, kind).text == "@Bob 9:00 standup"


@every_row("kind", ["post", "interactive"])
def test_where_an_element_is_the_mention_digits_after_it_belong_to_the_text(kind: str) -> None:
    line = [{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": "9:00 standup"}]
    everybody = [{"tag": "at", "user_id": "@_all"}, {"tag": "text", "text": "hands"}]
    content = {"content": [line, everybody], "elements": [line, everybody]}
    people = {"@_user_1": ("ou_bob", "Bob"), "@_user_19": ("ou_eve", "Eve")}
    shown = received(json.dumps(content), people, kind)
    assert shown.text == "@Bob 9:00 standup\n@all hands"
    assert shown.mentions_all


numbers = st.sets(st.integers(1, 130), max_size=12)
words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12
) | st.sampled_from(["9:00", "_", "@", "@_user_", "1", "12", "/stop", "你好", "@_all"])


@given(numbers, st.lists(st.tuples(words, st.integers(1, 130)), max_size=8), words)
def test_any_mentions_in_any_text_are_found_by_the_longest_listed_key(
    listed: set[int], pieces: list[tuple[str, int]], last: str
) -> None:
    template = "".join(f"{before}@_user_{number}" for before, number in pieces) + last
    rendered = render_mentions(template, [mention(number, f"«{number}»") for number in listed])

    expected = longest_keys(template, listed)
    assert re.findall(r"@«(\d+)»", rendered) == [str(number) for number, _ in expected]
    for sign in set(template) - {" "}:
        taken = sum(f"@_user_{number}".count(sign) for number, _ in expected)
        given_back = sum(f"@«{number}»".count(sign) for number, _ in expected)
        everybody = len(re.findall(r"@_all(?![A-Za-z0-9_])", rest_of(template, expected)))
        lost = everybody if sign == "_" else 0
        assert rendered.count(sign) == template.count(sign) - taken + given_back - lost, sign


def longest_keys(template: str, listed: set[int]) -> list[tuple[int, int]]:
    """(number, position) of each key, by trying every listed key at every position."""
    found, at = [], 0
    while at < len(template):
        here = [n for n in listed if template.startswith(f"@_user_{n}", at)]
        if here:
            found.append((max(here), at))
            at += len(f"@_user_{max(here)}")
        else:
            at += 1
    return found


def rest_of(template: str, keys: list[tuple[int, int]]) -> str:
    signs = list(template)
    for number, at in keys:
        signs[at : at + len(f"@_user_{number}")] = "\x00" * len(f"@_user_{number}")
    return "".join(signs)


@given(words, words)
def test_a_text_without_listed_keys_stays_as_it_is(before: str, after: str) -> None:
    text = f"{before} @_user_1{after}".replace("@_all", "")
    assert render_mentions(text, []) == text
