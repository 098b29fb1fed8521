"""How a fact or note is shown: whence, since when, who can see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.features.own_memory import texts
from bot.features.own_memory.texts import Viewer, item_line
from bot.feishu.markup import applink_base, with_marks
from bot.text.languages import Language
from memory.models import FormerValue
from memory.tables.items import ChangedItem, Item, ItemKind

ALICE = "ou_alice"
FACT = Item(
    kind="fact",
    id="1",
    key="city",
    value="Hangzhou",
    scope="user",
    actor_id=ALICE,
    user_id=ALICE,
    chat_id="oc_private",
    shared_chat_id=None,
    turn_id="om_1",
    at="2026-03-03T10:00:00+00:00",
    chat_type="p2p",
)
NOW = datetime(2026, 3, 9, tzinfo=UTC)
VIEWER = Viewer(ALICE, "en", NOW, lambda open_id: "Bob", applink_base("https://open.feishu.cn"))


def test_a_fact_says_since_when_from_where_and_who_sees_it() -> None:
    assert texts.item_list([FACT], 6, 5, VIEWER) == (
        "**Facts and notes** (6–6 of 6)\n\n"
        "**6.** city: “Hangzhou”\n"
        "long-term memory · since 3 Mar at 10:00 · "
        "[our private chat](https://applink.feishu.cn/client/chat/open?openChatId=oc_private) · "
        "only you can see it\n\n"
        "Page 2 of 2"
    )


@pytest.mark.parametrize(
    ("language", "since", "line"),
    [
        (
            "en",
            "2026-01-02T08:00:00+00:00",
            "before: “Ningbo” (2 Jan at 08:00 – 3 Mar at 10:00)",
        ),
        ("en", FACT.at, "before: “Ningbo” (until 3 Mar at 10:00)"),
        ("en", None, "before: “Ningbo” (until 3 Mar at 10:00)"),
        ("zh", None, "之前：“Ningbo”（至 3月3日 10:00）"),
    ],
)
def test_a_fact_that_changed_says_what_it_was(
    language: Language, since: str | None, line: str
) -> None:
    changed = replace(FACT, before=FormerValue("Ningbo", since, FACT.at))

    told = texts.item_list([changed], 1, 0, replace(VIEWER, language=language))

    assert told.endswith(f"\n{line}")


def test_what_others_said_names_them_and_a_group_its_members() -> None:
    said = replace(
        FACT, scope="chat", actor_id="ou_bob", chat_type="group", chat_name="Launch [team](x)"
    )
    told = texts.item_list([said], 1, 0, VIEWER)

    assert "said by Bob about you" in told
    assert "members of Launch (team)(x) can see it" in told
    assert "said by you about Bob" in texts.item_list(
        [replace(FACT, user_id="ou_bob")], 1, 0, VIEWER
    )


def test_a_shared_note_says_with_whom() -> None:
    note = replace(FACT, kind="note", shared_chat_id="oc_team", shared_chat_name="Team")

    assert "note · since 3 Mar at 10:00" in texts.item_list([note], 1, 0, VIEWER)
    assert "only you can see it · shared with Team" in texts.item_list([note], 1, 0, VIEWER)


def test_a_receipt_names_what_was_deleted() -> None:
    assert "city: “Hangzhou”" in texts.deletion_receipt(
        ChangedItem("fact", "city", "Hangzhou"), "en"
    )
    assert "city：1、2" in texts.deletion_receipt(ChangedItem("fact", "city", [1, 2]), "zh")


@pytest.mark.parametrize(
    ("kind", "key", "value", "line"),
    [
        ("fact", "our_launch", "our launch is on 3 March", "“our launch is on 3 March”"),
        (
            "fact",
            "the_key_of_the_flat_of_my_elder_sis",
            "the key of the flat of my elder sister is red",
            "“the key of the flat",
        ),
        ("fact", "art", "artful", "art: “artful”"),
        ("fact", "我们的_retreat", "我们的retreat在三月三日", "“我们的retreat在三月三日”"),
        ("fact", "favouriteColour", "blue", "favourite colour: “blue”"),
        ("fact", "home-town", "Hangzhou", "home town: “Hangzhou”"),
        ("fact", "art", "we start at 5", "art: “we start at 5”"),
        ("fact", "发布会", "我们的发布会在三月三日", "“我们的发布会在三月三日”"),
        ("fact", "我的生日_time", "我的生日是五月四日", "“我的生日是五月四日”"),
        ("fact", "our_launch_time", "our launch moved to 12 March", "“our launch moved"),
        ("fact", "likes_tea", True, "likes tea: yes"),
        ("fact", "pets", ["cat", {"dog_name": "Rex"}], "pets: cat, dog name: Rex"),
        ("fact", "age", 41, "age: 41"),
        ("fact", "code", "`a` [b](c)", "code: “`a` [b](c)”"),
        ("note", "Shopping", "", "“Shopping”"),
        ("note", "Shopping", "milk and shopping bags", "“Shopping”: “milk and shopping bags”"),
        ("note", "Milk", "milk and bread", "“milk and bread”"),
        ("note", "采购", "采购牛奶", "“采购牛奶”"),
        ("note", "采购", "今天采购牛奶", "“采购”: “今天采购牛奶”"),
        ("note", "", "call the bank\ntomorrow", "“call the bank tomorrow”"),
        ("note", " ", "", "a note without a title"),
        ("note", "Long", "word " * 90, "“Long”: “word word"),
    ],
)
def test_an_item_reads_as_a_person_would_write_it(
    kind: ItemKind, key: str, value: object, line: str
) -> None:
    told = with_marks(item_line(kind, key, value, "en"))

    assert told.startswith(line)
    assert len(told) < 250
    assert "\n" not in told


def test_a_note_without_a_title_can_be_named_in_a_question() -> None:
    assert "“a note without a title”" in texts.ask_delete("note", "", "en")
    assert "“our launch”" in texts.ask_delete("fact", "our_launch", "zh")


def test_links_lead_into_the_app_of_the_platform() -> None:
    assert applink_base("https://open.larksuite.com").startswith("https://applink.larksuite.com/")
