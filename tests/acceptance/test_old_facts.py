"""An old fact is in the prompt of the question that needs it, through the real processes.

Twenty-four conversations: in each somebody says a fact, talk about other things follows until the
window has lost it, and a question needs it. The last two of each place are asked as people do: in
other words, by who said it, by a relative date, for the first of several, after a correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from tests.acceptance.conftest import World, prompt_of

FLOOR = 22
Place = Literal["a fresh thread", "the same thread", "p2p"]


@dataclass(frozen=True)
class Case:
    """`needle` is what of `fact` must reach the model with `question`; `then` is said after it, and
    both by `speaker`."""

    fact: str
    question: str
    needle: str
    then: str = ""
    speaker: str = "Alice"


CASES: dict[Place, tuple[Case, ...]] = {
    "a fresh thread": (
        Case(
            "The venue for the offsite is Harbour House, room 12", "Which venue is it?", "Harbour"
        ),
        Case("Our courier is Swiftline, call 555-0142", "How do I call the courier?", "555-0142"),
        Case("The staging password rotates every Thursday", "password rotation day?", "Thursday"),
        Case("发布会定在十一月二十八日，地点是星海大厦", "发布会在哪里开？", "星海大厦"),
        Case("新来的实习生叫陆晴，坐在四楼", "实习生坐几楼？", "四楼"),
        Case("报销单要交给财务的周敏", "报销要找谁？", "周敏"),
        Case(
            "We settled on Marlow & Pike to print the brochures, they want files nine days ahead",
            "who's doing the printing for us and how early do they need everything",
            "Marlow & Pike",
        ),
        Case(
            "跟供应商谈妥了，包材每箱降到八十六块",
            "今天早些时候谈的供应商价格，一箱多少钱来着",
            "八十六",
        ),
    ),
    "the same thread": (
        Case("I am allergic to shellfish and peanuts", "Which foods am I allergic to?", "peanuts"),
        Case("The rehearsals begin at nine in hall B", "Where do we rehearse?", "hall B"),
        Case("The budget for the stand is 4,300 euros", "How much may the stand cost?", "4,300"),
        Case("我的护照尾号是7731", "我的护照尾号是多少？", "7731"),
        Case("客户要求合同用蓝色封面", "合同封面用什么颜色？", "蓝色"),
        Case("周会改到每周三上午十点", "上次说周会是几点？", "十点"),
        Case(
            "I think the blue mock-up reads better on phones",
            "who was it that preferred the blue design?",
            "blue mock-up",
            speaker="Bob",
        ),
        Case(
            "机房门禁密码先用 4417",
            "现在进机房要按哪几个数字？",
            "9052",
            then="机房门禁换成 9052 了",
        ),
    ),
    "p2p": (
        Case("My dentist is Doctor Okafor in Mill Lane", "Who is my dentist?", "Okafor"),
        Case("I parked the car on level P3", "Where did I park?", "P3"),
        Case("My sister's birthday is on 9 June", "When is my sister's birthday?", "9 June"),
        Case("我家的猫叫豆包，今年三岁", "我的猫叫什么名字？", "豆包"),
        Case("我每天早上吃二甲双胍一片", "我早上要吃什么药？", "二甲双胍"),
        Case("我的健身卡到明年二月到期", "健身卡什么时候到期？", "明年二月"),
        Case(
            "First visit to the physio went fine, she gave me calf stretches",
            "what was I told to do at my very first physio appointment?",
            "calf stretches",
            then="Second visit to the physio, now it is hip bridges",
        ),
        Case(
            "体检出来尿酸有点高，医生让我少吃动物内脏",
            "我最近一次体检，大夫嘱咐了什么？",
            "动物内脏",
        ),
    ),
}
# Longer than the share of the window that other people's exchanges have.
OTHER_TALK = (
    "tell a joke about penguins" + " that slide down a long white slope" * 30,
    "随便说一句鼓励大家" + "，加油，大家都很棒" * 30,
)


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"HISTORY_MESSAGES": "4", "SUMMARY_AFTER_MESSAGES": "0"}


def test_an_old_fact_reaches_the_question_that_needs_it(world: World) -> None:
    missed = [
        (place, case.question)
        for place, cases in CASES.items()
        for case in cases
        if not _is_told(world, place, case)
    ]

    assert len(missed) <= sum(map(len, CASES.values())) - FLOOR, missed


def test_a_greeting_in_a_fresh_thread_searches_for_nothing(world: World) -> None:
    world.ask("Alice", CASES["a fresh thread"][0].fact)
    world.model.forget()

    world.ask("Bob", "good morning!")

    (request,) = world.model.requests()
    assert "Earlier messages" not in str(request["body"])


@pytest.mark.parametrize(
    ("was", "change", "question"),
    [
        ("The workshop is in hall B", "The workshop has moved to hall D", "Which hall workshop?"),
        ("评审会是周四下午", "评审会改到周五上午", "评审会是哪天？"),
    ],
)
def test_of_a_fact_that_changed_the_model_is_told_which_holds(
    world: World, was: str, change: str, question: str
) -> None:
    for said in (was, change):
        world.settled(world.ask("Alice", said)[0])
    for talk in OTHER_TALK:
        world.settled(world.ask("Alice", talk)[0])
    world.model.forget()

    world.ask("Bob", question)

    told = "\n".join(text for _, text in prompt_of(world.model.requests()[0])).splitlines()
    assert {_mark(line) for line in told if was in line} == {"earlier"}
    assert {_mark(line) for line in told if change in line} == {"current"}


def test_what_a_command_showed_is_not_what_was_said(world: World) -> None:
    for command in ("/settings", "/help", "帮助"):
        world.settled(world.say("Alice", f"@{world.bot_name} {command}"))
    world.settled(world.ask("Alice", "the answer in the settings of the printer is 42")[0])
    for talk in OTHER_TALK:
        world.settled(world.ask("Alice", talk)[0])
    world.model.forget()

    world.ask("Bob", "which settings answer a mention in this group, and what can I do?")

    (prompt, *_) = world.model.requests()
    told = [text for _, text in prompt_of(prompt)]
    assert not [text for text in told if "/settings" in text or "Messages I answer" in text]
    assert any("printer is 42" in text for text in told)


def _mark(line: str) -> str:
    """Of a recalled line: what its head says last, without the time."""
    return line.split("]")[0].split(" · ")[-1].split(",")[0]


def _is_told(world: World, place: Place, case: Case) -> bool:
    """Whether the fact was in what the model was given with the question, and not in the window."""
    where = {"chat": _p2p(world)} if place == "p2p" else {}
    if place == "the same thread":
        where["root_id"] = world.ask("Alice", "good morning!")[0]
    for said in (case.fact, *([case.then] if case.then else []), *OTHER_TALK):
        world.settled(world.ask(case.speaker, said, **where)[0])
    world.model.forget()

    asker = "Bob" if place == "a fresh thread" else "Alice"
    world.ask(asker, case.question, **where)

    told = prompt_of(world.model.requests()[0])
    assert all(case.needle not in text for role, text in told if role != "system"), "in the window"
    return any(case.needle in text for _, text in told)


def _p2p(world: World) -> str:
    return next(
        str(chat["chat_id"])
        for chat in world.platform.state()["chats"]
        if chat["mode"] == "p2p" and world.people["Alice"] in chat["members"]
    )
