"""One wish for reminders at several times makes one reminder for each, in both languages."""

from __future__ import annotations

from bot.agents.offline.notes import Call, say
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.reminders import next_reminder_step
from bot.agents.offline.request_forms import completed, requests_in
from bot.text.languages import language_of
from tests.support.rows import every_row

NOW = "Now:\n2026-11-25 10:00 Wednesday (Asia/Shanghai)"
Told = tuple[str, str]


def set_by(question: str) -> list[Told]:
    """Time and text of each reminder that is set; an answer instead of one stands as ("", it)."""
    told = []
    for request in requests_in(question):
        wish = reminder_wish(request)
        assert wish, request
        step = next_reminder_step(wish, [], NOW, language_of([question]))
        if isinstance(step, Call):
            repeats = step.arguments["repeats"]
            often = "" if repeats == "once" else f" {repeats}"
            told.append((step.arguments["at"][5:] + often, step.arguments["text"]))
        else:
            told.append(("", step))
    return told


@every_row(
    "question, reminders",
    [
        (
            "remind me tomorrow at 9 to call the bank, and at 11 to send the draft",
            [("11-26T09:00", "call the bank"), ("11-26T11:00", "send the draft")],
        ),
        (
            "remind me tomorrow at 9 to call the bank and at 11 to send the draft",
            [("11-26T09:00", "call the bank"), ("11-26T11:00", "send the draft")],
        ),
        (
            "Please remind us on Friday at 9:30 to stand up, at 12 to eat and at 3 pm to go home.",
            [("11-27T09:30", "stand up"), ("11-27T12:00", "eat"), ("11-27T15:00", "go home")],
        ),
        (
            "remind me at 2pm to water the plants, then tomorrow at 9 to feed the cat",
            [("11-25T14:00", "water the plants"), ("11-26T09:00", "feed the cat")],
        ),
        (
            "remind me in 20 minutes to stretch and in an hour to drink",
            [("11-25T10:20", "stretch"), ("11-25T11:00", "drink")],
        ),
        (
            "remind me tomorrow at 9 and at 11 to take the pills",
            [("11-26T09:00", "take the pills"), ("11-26T11:00", "take the pills")],
        ),
        (
            "remind me tomorrow at 9 and 11 to take the pills",
            [("11-26T09:00", "take the pills"), ("11-26T11:00", "take the pills")],
        ),
        (
            "remind me to take the pills tomorrow at 8, 13:00 and 18:00",
            [(f"11-26T{hour}:00", "take the pills") for hour in ("08", "13", "18")],
        ),
        (
            "remind me to take the pills every day at 8 am and at 8 pm",
            [("11-25T08:00 daily", "take the pills"), ("11-25T20:00 daily", "take the pills")],
        ),
        (
            "remind me to take my pills at 8am and 8pm every day",
            [("11-25T08:00 daily", "take my pills"), ("11-25T20:00 daily", "take my pills")],
        ),
        (
            "remind me to call Bob at 2 pm and tomorrow at 11",
            [("11-25T14:00", "call Bob"), ("11-26T11:00", "call Bob")],
        ),
        (
            "remind us on Monday, Wednesday and Friday at 8am to stretch",
            [("11-30T08:00", "stretch"), ("12-02T08:00", "stretch"), ("11-27T08:00", "stretch")],
        ),
        (
            "remind me on Friday, at 9 to call Ann and at 11 to call Bob",
            [("11-27T09:00", "call Ann"), ("11-27T11:00", "call Bob")],
        ),
        (
            "remind me on Monday and Tuesday at 9 to check the mail",
            [("11-30T09:00", "check the mail"), ("12-01T09:00", "check the mail")],
        ),
        (
            "remind me tomorrow at 7 pm to cook and at 9 to call mum",
            [("11-26T19:00", "cook"), ("11-26T21:00", "call mum")],
        ),
        (
            "明天9点提醒我给银行打电话，11点发草稿",
            [("11-26T09:00", "给银行打电话"), ("11-26T11:00", "发草稿")],
        ),
        (
            "明天上午9点提醒我开会，下午3点提交报告，晚上8点给妈妈打电话",
            [("11-26T09:00", "开会"), ("11-26T15:00", "提交报告"), ("11-26T20:00", "给妈妈打电话")],
        ),
        (
            "提醒我明天9点给银行打电话，后天10点去取钱",
            [("11-26T09:00", "给银行打电话"), ("11-27T10:00", "取钱")],
        ),
        (
            "明天9点和11点提醒我吃药",
            [("11-26T09:00", "吃药"), ("11-26T11:00", "吃药")],
        ),
        (
            "每天8点、12点和18点提醒大家喝水",
            [(f"11-25T{hour}:00 daily", "喝水") for hour in ("08", "12", "18")],
        ),
        (
            "周五和周六早上9点提醒我浇花",
            [("11-27T09:00", "浇花"), ("11-28T09:00", "浇花")],
        ),
        (
            "明晚8点提醒我做饭，10点关灯",
            [("11-26T20:00", "做饭"), ("11-26T22:00", "关灯")],
        ),
        (
            "20分钟后提醒我喝水，1小时后提醒我站起来",
            [("11-25T10:20", "喝水"), ("11-25T11:00", "站起来")],
        ),
        (
            "20分钟后提醒我喝水，1小时后站起来",
            [("11-25T10:20", "喝水"), ("11-25T11:00", "站起来")],
        ),
        (
            "明天9点、11点和15点分别提醒我喝水",
            [(f"11-26T{hour}:00", "喝水") for hour in ("09", "11", "15")],
        ),
        (
            "请在今天下午3点和5点分别提醒我喝水",
            [("11-25T15:00", "喝水"), ("11-25T17:00", "喝水")],
        ),
        ("请特别提醒我明天9点开会", [("11-26T09:00", "开会")]),
        (
            "remind me at 5 to leave, and at 8 to call home",
            [("11-25T17:00", "leave"), ("11-25T20:00", "call home")],
        ),
        (
            "remind me in 10 minutes and again in 20 minutes to check the oven",
            [("11-25T10:10", "check the oven"), ("11-25T10:20", "check the oven")],
        ),
        (
            "remind everyone on Monday at 9 that the sprint starts and at 17:00 that it ends",
            [("11-30T09:00", "the sprint starts"), ("11-30T17:00", "it ends")],
        ),
        (
            "15:00提醒我开会，16:30提醒我回家，另外明天9点提醒我交材料",
            [("11-25T15:00", "开会"), ("11-25T16:30", "回家"), ("11-26T09:00", "交材料")],
        ),
    ],
)
def test_each_time_gets_its_reminder(question: str, reminders: list[Told]) -> None:
    assert set_by(question) == reminders


@every_row(
    "question",
    [
        "remind me tomorrow at 9 that lunch is at 12",
        "remind me at 2 pm that the talks are at 3 pm and at 4 pm",
        "remind me between 9 and 11 to call Bob",
        "remind me from 9 to 11 to stay calm",
        "remind me tomorrow before 9 or after 11 to call Bob",
        "remind me at 9 or at 11 to call Bob",
        "remind me tomorrow at 9 to buy 3 apples and 11 pears",
        "remind me tomorrow at 9 to say “at 11 we go, and at 12 we eat”",
        "remind me tomorrow at 9 to call Bob and Tom",
        "remind me to submit the report, Friday at 9",
        "dec 4, 10am. ping me at 9.45",
        "浇花的提醒改八点吧，七点太早",
        "remind me today at 4 pm to leave and on Friday to pay the rent",
        "明天9点提醒我，11点的会取消了",
        "明天9点到11点提醒我休息",
        "明天9点或者11点提醒我吃药",
        "明天9点提醒我买牛奶，面包",
    ],
)
def test_what_is_one_reminder_or_none_is_not_divided(question: str) -> None:
    assert requests_in(question) == [question]


def test_who_is_reminded_stays_the_same() -> None:
    [first, second] = requests_in("remind @Bob and @Carol tomorrow at 9 to stand up, at 11 to eat")
    wishes = [reminder_wish(one) for one in (first, second)]
    assert [one and one.whom for one in wishes] == [("@Bob", "@Carol")] * 2


def test_beside_another_request_each_time_still_gets_its_reminder() -> None:
    question = "remember that the code is 42, and remind me tomorrow at 9 to change it, at 11 to go"
    assert requests_in(question) == [
        "remember that the code is 42",
        "remind me tomorrow at 9 to change it",
        "remind me at 11 to go tomorrow",
    ]


def test_the_half_of_the_day_that_was_asked_for_is_of_that_reminder_alone() -> None:
    question, asked = "remind me at 9 to call Ann and at 14:00 to eat", say("ask-halves", "en")
    told = completed("9 pm", question, asked)
    assert set_by(told) == [("11-25T21:00", "call Ann")]
