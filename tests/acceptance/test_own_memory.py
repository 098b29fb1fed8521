"""People look at what is kept of them, correct and delete it, one item at a time."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from lab.doubles.processes import eventually
from memory.receipts import parse_receipt
from sandbox.cards.forms import tagged
from tests.acceptance.conftest import World, is_from_bot, markdown, prompt_of
from tests.acceptance.test_commands import click
from tests.acceptance.test_seed_scenarios import restart
from tests.acceptance.test_taking_back import where
from tests.acceptance.test_welcome import newcomer


@pytest.fixture
def word() -> str:
    """A word nobody else uses."""
    return f"q{uuid.uuid4().hex[:12]}"


def private_chat(world: World, who: str) -> str:
    """Where that person is alone with the bot."""
    chats = world.platform.state()["chats"]
    return str(
        next(
            c["chat_id"] for c in chats if c["mode"] == "p2p" and world.people[who] in c["members"]
        )
    )


def keep(world: World, who: str, patch: dict[str, Any], *, chat: str | None = None) -> str:
    """Has the model keep a lasting fact of somebody; returns the message it comes from."""
    call = {"name": "update_working_memory", "arguments": {"scope": "person", "patch": patch}}
    rules = [{"reply": {"tool_calls": [call]}}, {"reply": {"text": "Kept."}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask(who, f"remember {json.dumps(patch)}", chat=chat)
    world.settled(question)
    world.model.control("mode", {"mode": "echo"})
    return question


def after(world: World, chat: str, action: Any) -> dict[str, Any]:
    """The bot's newest message in the chat, once `action` has brought one."""
    before = {m["message_id"] for m in world.platform.messages(chat)}
    action()

    def news() -> list[dict[str, Any]]:
        found = world.platform.messages(chat)
        return [m for m in found if is_from_bot(m) and m["message_id"] not in before]

    return eventually(news, what="a card")[-1]


def buttons(card: dict[str, Any]) -> list[str]:
    """The labels of its buttons in reading order, by which they are pressed."""
    found = tagged(card["card"]["body"]["elements"])
    return [one["text"]["content"] for one in found if one["tag"] == "button"]


def beside_entries(card: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The first lines of a list, each with the labels of the buttons beside it."""
    found = []
    for one in card["card"]["body"]["elements"]:
        if one["tag"] == "column_set":
            words, pressed = one["columns"]
            labels = [button["text"]["content"] for button in pressed["elements"]]
            found.append((words["elements"][0]["content"], labels))
    return found


def press(world: World, who: str, chat: str, card: dict[str, Any], label: str) -> dict[str, Any]:
    """The card that pressing the button brings."""
    index = buttons(card).index(label)
    return after(world, chat, lambda: click(world, who, card, index=index))


def test_in_p2p_everything_is_listed_and_one_fact_is_corrected_and_deleted(
    world: World, word: str
) -> None:
    _, chat = newcomer(world, "Nora")
    told = keep(world, "Nora", {"city": word}, chat=chat)
    asked = world.say("Nora", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    listed = world.answers(asked, chat=chat)[-1]
    assert beside_entries(listed) == [(f"**1.** city: “{word}”", ["Correct", "Delete"])]
    assert "only you can see it" in markdown(listed)
    assert f"client/chat/open?openChatId={chat}" in markdown(listed)

    messages = len(world.platform.messages(chat))
    listed = save(world, "Nora", correct(world, "Nora", listed), f" {word}2 ")
    assert f"Corrected city: it said “{word}”, now it says “{word}2”" in markdown(listed)
    assert beside_entries(listed) == [(f"**1.** city: “{word}2”", ["Correct", "Delete"])]
    assert len(world.platform.messages(chat)) == messages, "the card changes in place"
    [kept] = world.rows("select content from agent_working_memory where content ? 'city'")
    assert kept["content"]["city"] == f"{word}2"

    sure = press(world, "Nora", chat, listed, "Delete")
    assert "Delete “city” for good?" in markdown(sure)
    receipt = press(world, "Nora", chat, sure, "Delete")
    assert f"Deleted for good: city: “{word}2”" in markdown(receipt)
    assert "I haven't saved any facts or notes about you." in markdown(receipt)
    assert buttons(receipt) == ["Deletion receipts"]
    eventually(lambda: not where(world, word), what="it is gone everywhere")
    assert not world.rows("select 1 from agent_messages where turn_id = %s", told)

    def naming() -> list[dict[str, Any]]:
        left = [m for m in world.platform.messages(chat) if is_from_bot(m) and not m["deleted"]]
        return [m for m in left if word in json.dumps(m)]

    eventually(lambda: naming() == [receipt], what="only the receipt names it")


def now(world: World, chat: str, card: dict[str, Any], words: str) -> dict[str, Any]:
    """The card as it is once it holds these words."""

    def found() -> list[dict[str, Any]]:
        same = [m for m in world.platform.messages(chat) if m["message_id"] == card["message_id"]]
        return [m for m in same if words in markdown(m)]

    return dict(eventually(found, what=f"a card with {words!r}")[0])


def correct(world: World, who: str, card: dict[str, Any]) -> dict[str, Any]:
    """The card with the form in which the first entry is corrected."""
    click(world, who, card, index=buttons(card).index("Correct"))
    return now(world, card["chat_id"], card, "Correct:")


def save(world: World, who: str, card: dict[str, Any], value: str) -> dict[str, Any]:
    """The card with the list, once the value was submitted."""
    submit = {"index": buttons(card).index("Save"), "form": {"new_value": value}}
    click(world, who, card, **submit)
    return now(world, card["chat_id"], card, "**1.**")


def test_a_correction_shows_the_value_of_now_and_can_be_called_off(world: World, word: str) -> None:
    _, chat = newcomer(world, "Vera")
    keep(world, "Vera", {"city": word}, chat=chat)
    asked = world.say("Vera", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    listed = world.answers(asked, chat=chat)[-1]

    form = correct(world, "Vera", listed)
    assert f"city: “{word}”" in markdown(form)
    assert buttons(form) == ["Save", "Cancel"]
    click(world, "Vera", form, index=1)
    listed = now(world, chat, form, "**1.**")
    assert "Corrected" not in markdown(listed)
    again = save(world, "Vera", correct(world, "Vera", listed), "  ")
    assert "OK, nothing was changed." in markdown(again)
    assert beside_entries(again) == [(f"**1.** city: “{word}”", ["Correct", "Delete"])]


def test_a_person_gets_the_receipt_of_a_deletion_and_its_salt_once(world: World, word: str) -> None:
    _, chat = newcomer(world, "Rita")
    keep(world, "Rita", {"city": word}, chat=chat)
    asked = world.say("Rita", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    listed = world.answers(asked, chat=chat)[-1]
    assert "Deletion receipts" not in buttons(listed), "nothing was deleted"
    sure = press(world, "Rita", chat, listed, "Delete")
    deleted = press(world, "Rita", chat, sure, "Delete")

    shown = markdown(press(world, "Rita", chat, deleted, "Deletion receipts"))
    copy = json.loads(shown.split("```json")[1].split("```")[0])
    receipt = parse_receipt(copy["receipt"])
    assert f"Receipt {receipt.label}" in markdown(deleted)
    assert receipt.names_text(copy["salt"], word)
    eventually(lambda: not where(world, copy["salt"]), what="only Rita has the salt")
    again = markdown(press(world, "Rita", chat, deleted, "Deletion receipts"))
    assert "its salt has already been given out" in again
    assert copy["salt"] not in again


def test_a_deletion_can_be_called_off(world: World, word: str) -> None:
    chat = private_chat(world, "Bob")
    keep(world, "Bob", {"hobby": word}, chat=chat)
    asked = world.say("Bob", "/记忆", chat=chat)
    world.answer(asked, chat=chat)
    sure = press(world, "Bob", chat, world.answers(asked, chat=chat)[-1], "删除")
    press(world, "Bob", chat, sure, "取消")

    assert world.rows("select 1 from agent_working_memory where content ? 'hobby'")


def beside(world: World, who: str) -> list[dict[str, Any]]:
    """The cards that only `who` sees in the group, without those that were taken away."""
    return [
        m
        for m in world.platform.messages(world.group)
        if m["visible_to"] == world.people[who] and not m["deleted"]
    ]


def shown(world: World, who: str, words: str) -> dict[str, Any]:
    """The one card beside the group, once it holds these words."""

    def found() -> list[dict[str, Any]]:
        cards = beside(world, who)
        return cards if len(cards) == 1 and words in markdown(cards[0]) else []

    return dict(eventually(found, what=f"a card with {words!r}")[0])


def known_members(world: World) -> None:
    eventually(
        lambda: world.rows("select 1 from chat_members where chat_id = %s", world.group),
        what="it is known who is in the group",
    )


def test_in_a_group_it_is_shown_right_there_to_who_asks_alone(world: World, word: str) -> None:
    chat = private_chat(world, "Alice")
    keep(world, "Alice", {"pet": word}, chat=chat)
    keep(world, "Alice", {"team": "blue"})
    known_members(world)
    alone, before = len(world.platform.messages(chat)), len(world.platform.messages(world.group))
    asked = world.say("Alice", f"@{world.bot_name} /memory")
    card = shown(world, "Alice", f"pet: “{word}”")
    told = markdown(card)
    assert "only you can see this" in told
    assert "team: “blue”" in told
    assert "members of Test can see it" in told
    assert len(world.platform.messages(chat)) == alone, "nothing comes in p2p"
    world.settled(asked)
    news = world.platform.messages(world.group)[before:]
    assert [m["message_id"] for m in news] == [asked, card["message_id"]], "the group reads nothing"
    eventually(
        lambda: not world.rows("select 1 from agent_messages where turn_id = %s", asked),
        what="the question is nobody's history",
    )

    pets = next(at for at, (line, _) in enumerate(beside_entries(card)) if "pet" in line)
    number = 2 * pets + 1  # Delete is the second of its two
    pressed = {"as": world.people["Bob"], "message_id": card["message_id"], "index": number}
    with pytest.raises(AssertionError, match="does not see"):
        world.platform.post("/click", **pressed)
    click(world, "Alice", card, index=number)
    sure = shown(world, "Alice", "for good?")
    click(world, "Alice", sure, index=buttons(sure).index("Cancel"))
    again = shown(world, "Alice", f"pet: “{word}”")
    click(world, "Alice", again, index=number)
    sure = shown(world, "Alice", "for good?")
    value = sure["card"]["body"]["elements"][1]["behaviors"][0]["value"]
    click(world, "Alice", sure, index=buttons(sure).index("Delete"))
    left = shown(world, "Alice", "Deleted for good")
    assert "team: “blue”" in markdown(left)
    assert world.rows("select 1 from agent_working_memory where content ? 'pet'") == []
    forged = {"as": world.people["Bob"], "message_id": left["message_id"], "value": value}
    with pytest.raises(AssertionError, match="does not see"):
        world.platform.post("/click", **forged)
    public = [m for m in world.platform.messages(world.group) if not m["visible_to"]]
    assert word not in json.dumps(public)
    world.platform.post("/recall", message_id=asked, **{"as": world.people["Alice"]})
    eventually(lambda: not beside(world, "Alice"), what="the list goes with the question")


def test_beside_a_group_pages_go_both_ways_and_the_list_is_corrected_in_its_place(
    world: World, word: str
) -> None:
    chat = private_chat(world, "Bob")
    keep(world, "Bob", {f"key {n}": f"{word}{n}" for n in range(7)}, chat=chat)
    world.say("Bob", f"@{world.bot_name} /记忆")
    card = shown(world, "Bob", "第 1–5 项）")
    click(world, "Bob", card, index=buttons(card).index("下一页"))
    card = shown(world, "Bob", "第 6–")
    click(world, "Bob", card, index=buttons(card).index("上一页"))
    card = shown(world, "Bob", "第 1–5 项）")

    alone = len(world.platform.messages(chat))
    click(world, "Bob", card, index=buttons(card).index("更正"))
    form = shown(world, "Bob", "更正：")
    click(world, "Bob", form, index=buttons(form).index("保存"), form={"new_value": f"{word}new"})
    assert f"现在是“{word}new”" in markdown(shown(world, "Bob", "已更正"))
    assert len(world.platform.messages(chat)) == alone, "nothing comes in p2p"
    assert word not in json.dumps(
        [m for m in world.platform.messages(world.group) if not m["visible_to"]]
    )


def test_where_no_card_can_stand_beside_it_comes_in_p2p_and_the_group_is_told_so(
    world: World, word: str
) -> None:
    """In a thread it would stand outside of it, unseen; Feishu refuses it in topic groups."""
    chat = private_chat(world, "Alice")
    keep(world, "Alice", {"garden": word}, chat=chat)
    question, _ = world.ask("陈晨", "hello")
    card: str = ""

    def ask() -> None:
        nonlocal card
        _, card = world.ask("Alice", "/memory", root_id=question)

    listed = after(world, chat, ask)
    assert "sent it to you in our private chat" in card
    assert f"garden: “{word}”" in markdown(listed)
    assert beside(world, "Alice") == []
    sure = press(world, "Alice", chat, listed, next(b for b in buttons(listed) if "Delete" in b))
    press(world, "Alice", chat, sure, "Cancel")

    people = list(world.people.values())
    made = world.platform.post("/chats", name="Topics", members=people, topics=True)
    topics = world.in_a_new_group()
    topics.group = made["chat_id"]
    listed = after(world, chat, lambda: topics.ask("Alice", "/memory"))
    assert f"garden: “{word}”" in markdown(listed)
    assert beside(topics, "Alice") == []


def test_a_long_list_has_pages(world: World) -> None:
    chat = private_chat(world, "陈晨")
    keep(world, "陈晨", {f"key {n}": n for n in range(7)}, chat=chat)
    asked = world.say("陈晨", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    first = world.answers(asked, chat=chat)[-1]
    assert "(1–5 of 7)" in markdown(first)

    second = press(world, "陈晨", chat, first, "Next page")
    assert "(6–7 of 7)" in markdown(second)


def test_a_list_that_is_behind_says_what_there_is_now(world: World, word: str) -> None:
    """Its items went meanwhile: on the page that is turned to, and the one that is pressed."""
    _, chat = newcomer(world, "Behind")
    keep(world, "Behind", {f"key {n}": f"{word}{n}" for n in range(6)}, chat=chat)
    asked = world.say("Behind", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    listed = world.answers(asked, chat=chat)[-1]
    second = press(world, "Behind", chat, listed, "Next page")
    assert "Page 2 of 2" in markdown(second)
    theirs = "where user_id = %s and scope = 'user'"
    taken = f"update agent_working_memory set content = content - array['key 0', 'key 5'] {theirs}"
    world.rows(f"{taken} returning 1", world.people["Behind"])

    first = press(world, "Behind", chat, listed, "Next page")
    assert "(1–4 of 4)" in markdown(first)
    assert "Page" not in markdown(first)
    assert [labels for _, labels in beside_entries(first)] == [["Correct", "Delete"]] * 4
    sure = press(world, "Behind", chat, second, "Delete")
    gone = press(world, "Behind", chat, sure, "Delete")
    assert "no longer exists" in markdown(gone)
    assert "(1–4 of 4)" in markdown(gone)


def test_what_was_called_off_can_be_pressed_again_and_deleting_keeps_the_page(
    world: World, word: str
) -> None:
    _, chat = newcomer(world, "Again")
    keep(world, "Again", {f"key {n}": f"{word}{n}" for n in range(7)}, chat=chat)
    asked = world.say("Again", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    second = press(world, "Again", chat, world.answers(asked, chat=chat)[-1], "Next page")
    sure = press(world, "Again", chat, second, "Delete")
    press(world, "Again", chat, sure, "Cancel")
    restart(world)

    sure = press(world, "Again", chat, second, "Delete")
    left = press(world, "Again", chat, sure, "Delete")
    assert "(6–6 of 6)" in markdown(left)
    assert buttons(left) == ["Correct", "Delete", "Previous page", "Deletion receipts"]


def test_the_buttons_of_a_list_from_before_still_work(world: World, word: str) -> None:
    chat = private_chat(world, "Alice")
    keep(world, "Alice", {"hobby": word}, chat=chat)
    asked = world.say("Alice", "/memory", chat=chat)
    world.answer(asked, chat=chat)
    listed = world.answers(asked, chat=chat)[-1]
    world.rows(
        "update agent_buttons set label = label || ' 1',"
        " payload = (payload - 'entry' - 'again') #- '{arguments,offset}'"
        " where turn_id = %s returning 1",
        asked,
    )
    sure = press(world, "Alice", chat, listed, "Delete")
    assert word in json.dumps(world.platform.messages(chat))
    left = press(world, "Alice", chat, sure, "Delete")
    assert f"Deleted for good: hobby: “{word}”" in markdown(left)


def test_the_tool_forgets_and_the_request_stays_nowhere_either(world: World, word: str) -> None:
    told = keep(world, "Alice", {"garden": word})
    call = {"name": "forget_fact", "arguments": {"key": "garden"}}
    rules = [{"reply": {"tool_calls": [call]}}, {"reply": {"text": f"Forgotten: {word}"}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    _, receipt = world.ask("Alice", f"I was wrong, forget that my garden is {word}")

    assert f"Forgotten: {word}" in receipt
    eventually(lambda: not where(world, word), what="it is gone everywhere")
    assert not world.rows("select 1 from agent_messages where turn_id = %s", told)


@pytest.mark.parametrize(
    ("now", "before"),
    [("Where do I live?", "Where did I live before?"), ("我住哪？", "我以前住哪？")],
)
def test_what_a_fact_was_before_is_told_when_that_is_asked(
    world: World, word: str, now: str, before: str
) -> None:
    chat = private_chat(world, "Alice")
    for city in (f"old{word}", f"new{word}"):
        keep(world, "Alice", {f"city{word}": city}, chat=chat)

    told = []
    for question in (now, before):
        world.model.forget()
        world.settled(world.ask("Alice", question, chat=chat)[0])
        request = next(
            one for one in world.model.requests() if prompt_of(one)[-1][1].endswith(question)
        )
        told.append("\n".join(text for role, text in prompt_of(request) if role == "system"))

    former = f"kept of Alice: city{word}: old{word}"
    assert all(f'"city{word}": "new{word}"' in text for text in told)
    assert [former in text for text in told] == [False, True]
    _, listed = world.ask("Alice", "/memory", chat=chat)
    assert f"before: “old{word}” (" in listed or f"之前：“old{word}”（" in listed
