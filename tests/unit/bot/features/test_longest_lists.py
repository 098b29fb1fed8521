"""The longest lists with buttons beside each entry fit on one card, and are not cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.features.own_memory import texts as item_texts
from bot.features.own_memory.forgetting import WORDS_SHOWN, ForgetCandidate, forget_line
from bot.features.own_memory.texts import item_line
from bot.features.reminders.feature import reminder_list
from bot.feishu.cards import Button, CheckField, answer_card
from bot.feishu.drawable_markdown import split_markdown
from bot.feishu.markup import applink_base
from memory.models import FormerValue
from memory.scope import memory_context
from memory.tables.cards import new_button_id
from memory.tables.items import Item
from memory.tables.timers import Timer, TimerPlan
from tests.support.cards import card_bytes

LONG = "字" * 2000
NOW = datetime(2026, 11, 23, tzinfo=UTC)
OVERVIEW = LONG[:900]


def card_of(markdown: str, labels: tuple[str, ...], entries: int) -> dict[str, Any]:
    (whole,) = split_markdown(markdown)
    beside = [entry for entry in range(entries, 0, -1) for _ in labels]
    buttons = [Button(labels[0], {"b": new_button_id()}, entry=entry) for entry in beside]
    return answer_card(whole, buttons=buttons)


def test_twenty_reminders_fit() -> None:
    context = memory_context(
        chat_id="oc_1", root="main", subject="ou_1", actor="ou_1", tenant_key="t"
    )
    people = tuple(f"ou_{number}" for number in range(20))
    plan = TimerPlan(LONG, NOW, "UTC", 4_102_444_800_000, "monthly", people)
    timers = [Timer(new_button_id(), context, "om_1", plan)] * 20
    told = reminder_list(timers, 20, lambda one: LONG, NOW, "zh")

    assert told.count("\n\n") == 20
    assert card_bytes(card_of(told, ("取消",), 20)) < 30_000


def test_five_items_with_the_latest_messages_fit() -> None:
    item = Item(
        kind="fact",
        id="1",
        key=LONG,
        value=LONG,
        scope="user",
        actor_id="ou_2",
        user_id="ou_1",
        chat_id=f"oc_{'a' * 32}",
        shared_chat_id="oc_2",
        turn_id=None,
        at=NOW.isoformat(),
        chat_type="group",
        chat_name=LONG,
        shared_chat_name=LONG,
        before=FormerValue(LONG, NOW.isoformat(), NOW.isoformat()),
    )
    link = applink_base("https://open.feishu.cn")
    viewer = item_texts.Viewer("ou_1", "zh", NOW, lambda one: LONG, link)
    told = item_texts.item_list([item] * 5, 99, 5, viewer)

    assert card_bytes(card_of(f"{OVERVIEW}\n\n{told}", ("更正", "删除"), 6)) < 30_000


def test_twenty_items_to_forget_fit_with_their_checkboxes() -> None:
    words = LONG.replace("字", "*字")
    line = item_line("note", words, words, "zh", WORDS_SHOWN)
    said = ForgetCandidate(line, {"message": "om_1"}, "sure")
    told = "\n\n".join([OVERVIEW, *(forget_line(n, said) for n in range(1, 21))])
    (whole,) = split_markdown(told)
    checks = tuple(CheckField(f"item_{n}", "删除", True, n) for n in range(20, 0, -1))
    card = answer_card(whole, buttons=[Button("删除", {"b": new_button_id()}, fields=checks)])

    assert card_bytes(card) < 30_000
