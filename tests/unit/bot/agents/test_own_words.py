"""What the asker's own words ask for is done at once; what others' words ask for is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.agents.tools.own_words import asked_for, own_words
from memory.models import StoredMessage

REQUESTS = Path(__file__).parents[3] / "data" / "reminder_requests.jsonl"
PLANTED = {"account": "CEO pays to 4400-1122"}

ASKS_TO_REMEMBER = """\
remember that our launch is on 3 March
Please remember this.
can you keep in mind that I'm off on Fridays?
could you note down what he wants
don't forget: the code is blue
from now on answer me in English
call me Ali
save this for later
记住我们的发布日是 3 月 3 日
帮我记一下这个
请记下来
以后叫我小明
别忘了我周五休息
能记住这份文件里的要点吗？
"""
ASKS_FOR_SOMETHING_ELSE = """\
what do you think of this?
summarise the attached file
please read this and tell me the main points
do you remember what we said about the budget?
can you remember what he said?
explain the note above
is this right?
translate it into Chinese
make a list of the risks
hi
yes
总结一下这个文件
这条消息什么意思？
你还记得预算吗？
看看这份会议记录
翻译成英文
这个记录里写了什么
"""


@pytest.mark.parametrize("words", ASKS_TO_REMEMBER.splitlines())
def test_remembering_stays_one_step(words: str) -> None:
    patch = {"scope": "person", "patch": PLANTED}
    assert asked_for("update_working_memory", patch, words, {})


@pytest.mark.parametrize("words", ASKS_FOR_SOMETHING_ELSE.splitlines())
def test_what_others_words_want_kept_waits_for_a_button(words: str) -> None:
    patch = {"scope": "person", "patch": PLANTED}
    assert not asked_for("update_working_memory", patch, words, {})
    note = {"title": "Payment", "body": "CEO pays to 4400-1122", "tags": []}
    if "note" not in words and "make" not in words:
        assert not asked_for("create_note", note, words, {})


@pytest.mark.parametrize(
    ("words", "patch"),
    [
        ("I'm vegetarian, what can I eat here?", {"diet": "vegetarian"}),
        ("I'm vegetarian, what can I eat here?", {"vegetarian": True}),
        ("我上周搬到柏林了", {"城市": "柏林"}),
        ("my name is Alice Lee", {"name": "Alice Lee"}),
    ],
)
def test_what_the_person_says_of_themselves_is_kept(words: str, patch: dict[str, Any]) -> None:
    assert asked_for("update_working_memory", {"scope": "person", "patch": patch}, words, {})


@pytest.mark.parametrize(
    "words",
    [
        "please do not remember that I live in Oslo",
        "Don't save this: I live in Oslo",
        "no need to note that, I'm in Oslo",
        "never store my city Oslo",
        "别记住我住在 Oslo",
        "不用记录，我在 Oslo 出差",
        'he said "remember that my city is Oslo", funny?',
        "他说“记住我住在 Oslo”",
    ],
)
def test_what_the_person_forbids_or_only_quotes_waits_for_a_button(words: str) -> None:
    fact = {"scope": "person", "patch": {"city": "Oslo"}}
    assert not asked_for("update_working_memory", fact, words, {})
    assert not asked_for("create_note", {"title": "Oslo", "body": "Oslo"}, words, {})


@pytest.mark.parametrize(
    "words",
    [
        "Do not forget to note that I live in Oslo",
        "I never remember my city, keep it: Oslo",
        "remember that they do not keep cats in Oslo",
        "别忘了帮我记下：Oslo",
        "不要忘记保存我住在 Oslo",
        "remember “Oslo”",
    ],
)
def test_a_no_that_forbids_nothing_stays_one_step(words: str) -> None:
    fact = {"scope": "person", "patch": {"city": "Oslo"}}
    assert asked_for("update_working_memory", fact, words, {})


def test_forgetting_is_not_forbidden_with_keeping() -> None:
    fact = {"scope": "person", "patch": {"city": None}}
    assert asked_for("update_working_memory", fact, "don't keep my city any more", {})


def test_facts_of_a_thread_are_the_models_own_notebook() -> None:
    assert asked_for("update_working_memory", {"scope": "thread", "patch": PLANTED}, "hi", {})


def test_every_known_request_for_a_reminder_is_one_step() -> None:
    for line in REQUESTS.read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        arguments = {"for_whom": list(request.get("whom") or ["me"])}
        assert asked_for("set_reminder", arguments, request["request"], {}), request


@pytest.mark.parametrize(
    ("words", "for_whom", "wanted"),
    [
        ("remind me tomorrow at 9", ["everybody"], False),
        ("remind me tomorrow at 9", ["Bob"], False),
        ("remind @Bob tomorrow at 9", ["Bob"], True),
        ("remind @Bob tomorrow at 9", ["ou_bob"], True),
        ("remind us tomorrow at 9", ["us"], True),
        ("what does this say?", ["us"], False),
        ("tell us what this says", ["us"], False),
        ("tell us at 17:00 to go home", ["us"], True),
        ("提醒我明天九点开会", ["大家"], False),
        ("每天 18:00 提醒大家写日报", ["大家"], True),
        ("给我们说说这个文件", ["us"], False),
        ("what does this say?", ["me"], True),
        ("what does this say?", [], True),
    ],
)
def test_reminders_of_others_need_the_askers_words(
    words: str, for_whom: list[str], wanted: bool
) -> None:
    names = {"ou_bob": "Bob", "ou_alice": "Alice"}
    assert asked_for("set_reminder", {"for_whom": for_whom}, words, names) is wanted


@pytest.mark.parametrize(
    ("tool", "words", "wanted"),
    [
        ("delete_note", "delete that note", True),
        ("delete_note", "删掉那条笔记", True),
        ("delete_note", "what does it say?", False),
        ("forget_fact", "forget that I like tea", True),
        ("forget_fact", "忘掉发布日", True),
        ("forget_fact", "总结一下", False),
        ("cancel_reminder", "cancel the reminder to meet", True),
        ("cancel_reminder", "hello", False),
        ("update_note", "remove the dinner tag from the first note", True),
        ("update_note", "把标题改成番茄意面", True),
        ("update_note", "what does it say?", False),
    ],
)
def test_changing_and_deleting_need_the_askers_words(tool: str, words: str, wanted: bool) -> None:
    assert asked_for(tool, {}, words, {}) is wanted


def message(role: Any, content: str, actor: str = "") -> StoredMessage:
    return StoredMessage(1, role, content, actor_id=actor)


def test_an_answer_to_the_bots_question_goes_with_what_was_asked_before() -> None:
    asked = message("user", "remind us all to meet", "alice")
    back = message("assistant", "On which day?")
    assert own_words("Friday at 3", [asked, back], "alice", alone=True) == (
        "remind us all to meet\nFriday at 3"
    )
    assert own_words("Friday at 3", [asked, back], "bob", alone=True) == "Friday at 3"
    assert own_words("Friday at 3", [asked, back], "alice", alone=False) == "Friday at 3"
    said = message("assistant", "Done.")
    assert own_words("what is this?", [asked, said], "alice", alone=True) == "what is this?"


def test_a_yes_says_what_the_bot_had_asked() -> None:
    back = message("assistant", "Shall I remember that you like tea?")
    words = own_words("yes", [message("user", "I like tea", "alice"), back], "alice", alone=True)
    patch = {"scope": "person", "patch": {"drink": "tea"}}
    assert asked_for("update_working_memory", patch, words, {})


@pytest.mark.parametrize(
    "words",
    ["tell us what is for lunch at 12", "告诉我们今天几点开会", "let us all know who comes at 9"],
)
def test_a_question_with_a_time_asks_for_no_reminder(words: str) -> None:
    reminder = {"text": "stand up", "at": "2027-01-05T09:00", "for_whom": ["us"]}
    assert not asked_for("set_reminder", reminder, words, {})
