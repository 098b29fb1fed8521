"""What the offline model makes of everyday sentences, and which statement it answers with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.agents.llm.model import Request
from bot.agents.offline import reminder_wishes, reminders, request_forms
from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import command
from bot.agents.offline.model import Situation, next_step, situation_of
from bot.agents.offline.notes import Call, Returned, say
from bot.agents.offline.prompt_reading import PromptLine, label_and_words
from bot.agents.offline.request_forms import respelled
from bot.agents.prompts.prompt import GROUP_FACTS, KNOWN_HEADING, QUESTION_HEADING, RECALLED
from bot.agents.tool_types import Toolbox, ToolOutcome
from bot.features.digests.feature import parse_argument
from bot.features.reminders.tools import WORDING
from bot.text.languages import Language
from bot.text.meant_commands import command_meant
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "offline"
TOOLS = frozenset(
    {"create_note", "update_note", "update_working_memory", "forget_fact", "recall", "set_reminder"}
    | {"list_due_tasks", "look_at_calendar", "book_meeting", "make_task"}
)
LANGUAGES: tuple[Language, ...] = ("en", "zh")
NOW = "Now:\n2026-11-28 10:00 Saturday (Asia/Shanghai)"


def kind(text: str) -> str:
    """How the model takes a message."""
    if meant := command_meant(text):
        return str(meant.name)
    if wish := reminder_wishes.reminder_wish(respelled(text)):
        return {"set": "remind"}.get(wish.kind, wish.kind)
    if asked := command(text):
        return "help" if asked.kind == "help" else "note"
    step = next_step(Situation(text, tools=TOOLS, instructions=NOW, own_name="Memo"))
    if isinstance(step, Call):
        tools = {"update_working_memory": "keep", "recall": "ask", "list_due_tasks": "tasks"}
        tools |= {"look_at_calendar": "calendar", "book_meeting": "book", "make_task": "task"}
        return tools.get(step.tool) or ("note" if "note" in step.tool else step.tool)
    texts = {"not-here": "forget", "only-read": "model", "greeting": "talk", "thanks": "talk"}
    texts |= {"acknowledged": "talk", "goodbye": "talk", "forget-what": "forget"}
    texts |= dict.fromkeys(
        (
            "about-privacy",
            "no-members",
            "no-agenda-change",
            "no-undo",
            "no-messages",
            "about-language",
        ),
        "itself",
    )
    keys = {say(key, language): name for key, name in texts.items() for language in LANGUAGES}
    about_me = {say("about-me", language, name="Memo"): "itself" for language in LANGUAGES}
    return {**keys, **about_me}[step]


@every_row("language", LANGUAGES)
def test_every_sentence_is_taken_as_it_is_meant(language: Language) -> None:
    rows = (DATA / f"sentences.{language}.txt").read_text().splitlines()
    pairs = [row.split(": ", 1) for row in rows if row]
    assert len(pairs) >= 60
    wrong = [(text, meant, kind(text)) for meant, text in pairs if kind(text) != meant]
    assert not wrong


def told(question: str, *lines: tuple[str, str], who: str = "Bob", when: str = "") -> str:
    """The answer to a question of `who` after what was said: (speaker, text) each."""
    said = tuple(PromptLine(text, name, when, own=name == "Memo") for name, text in lines)
    situation = Situation(question, said, author=who, instructions=NOW, own_name="Memo")
    return str(next_step(situation))


CORRECTED = say(
    "corrected-from", "en", old="the fair is on 3 March", fact="the fair is on 14 March"
)
SCENES: list[tuple[str, str, list[tuple[str, str]], str, str]] = [
    ("the newest", "when is the handover?",
     [("Alice", "remember that the handover is on 3 March"), ("Bob", "when is the handover?"),
      ("Memo", "Alice: the handover is on 3 March."), ("Alice", "the handover moved to 10 March")],
     "Alice: “the handover moved to 10 March”", "3 March"),
    ("the newest, Chinese", "交接是哪天？",
     [("Alice", "请记住：交接在3月3号"), ("Bob", "交接是哪天？"), ("Alice", "交接改到3月10号了")],
     "Alice：“交接改到3月10号了”", "3月3号"),
    ("asked often", "when is the gala?",
     [("Alice", "remember that the gala is on 3 March"), ("Alice", "the gala moved to 10 March"),
      ("Bob", "when is the gala?"), ("Memo", "Alice: the gala is on 3 March."),
      ("Bob", "when is the gala?"), ("Memo", "Alice: the gala is on 3 March.")],
     "the gala moved to 10 March", "3 March."),
    ("other people's", "who reviews the spec?",
     [("Alice", "the reviewer of the spec is Tomas"),
      ("陈晨", "Tomas is ill, Vera reviews the spec")],
     "Vera reviews the spec", ""),
    ("two voices", "how many chairs did we order?",
     [("Alice", "the order is 300 chairs"),
      ("陈晨", "purchasing wrote me that the order is 320 chairs")],
     "320 chairs”\n- Alice: “the order is 300 chairs”", ""),
    ("back again", "when is lunch?",
     [("Alice", "lunch is at noon"), ("Alice", "lunch is at half past twelve from today"),
      ("Alice", "lunch is at noon again")],
     "lunch is at noon again", "half past"),
    ("called off", "周五有什么活动？",
     [("Alice", "周五下午有分享会"), ("陈晨", "周五的分享会取消了")], "周五的分享会取消了", ""),
    ("in other words", "what does the Arbor licence cost?",
     [("Alice", "the licence for Arbor costs 900 a year"),
      ("陈晨", "Arbor raised the price to 1,100")],
     "1,100", "900"),
    ("of oneself", "what is Alice's extension?",
     [("Alice", "my extension is 203"), ("Alice", "my extension changed to 417")], "417", "203"),
    ("one's own", "when is my birthday?",
     [("Bob", "my birthday is 4 May"), ("Alice", "my birthday is 9 June")], "4 May", "9 June"),
    ("two matters", "what does Lena do?",
     [("Alice", "Lena is a designer"), ("Alice", "Lena is on holiday until Friday")],
     "Lena is a designer", ""),
    ("no commands", "what do you know about sushi?",
     [("Alice", "find my notes about sushi"), ("Alice", "create a note about sushi rolls")],
     "I don't know", "notes"),
    ("no commands, Chinese", "寿司在哪里买？",
     [("Alice", "找一下关于寿司的笔记"), ("Alice", "明天提醒我买寿司")], "我不知道", "提醒"),
    ("no sums", "12*7?",
     [("Alice", "I am on holiday from 7 to 12 March")], "I don't know", "holiday"),
    ("too little in common", "who fixed the red espresso machine?",
     [("Alice", "the red team won")], "I don't know", "red team"),
    ("too little in common, Chinese", "谁修好了红色咖啡机？",
     [("Alice", "红队赢了")], "我不知道", "赢"),
    ("corrected with its old value", "when is the fair?",
     [("Alice", "the fair is on 3 March"), ("Bob", "no, it is now 14 March"),
      ("Memo", CORRECTED)],
     "You told me: “the fair is on 14 March”", "Before"),
    ("corrected", "when is the fair?",
     [("Alice", "the fair is on 3 March"), ("Bob", "when is the fair?"),
      ("Memo", "Alice: the fair is on 3 March."), ("Bob", "no, it is now 14 March"),
      ("Memo", "Got it, corrected: “the fair is on 14 March”")],
     "You told me: “the fair is on 14 March”", "3 March"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "lines", "says", "never"), [one[1:] for one in SCENES],
                         ids=[one[0] for one in SCENES])  # fmt: skip
def test_the_statement_that_holds_is_told(
    question: str, lines: list[tuple[str, str]], says: str, never: str
) -> None:
    answer = told(question, *lines)
    assert says in answer
    assert not never or never not in answer


def test_who_said_it_and_when_is_told_in_the_readers_language() -> None:
    said, when = ("Alice", "the handover moved to 10 March"), "2026-11-28 05:37"
    english = told("when is the handover?", said, when=when)
    assert english == "Alice, 28 Nov at 05:37: “the handover moved to 10 March”"
    chinese = told("交接是哪天？", ("Alice", "交接改到3月10号了"), when=when)
    assert chinese == "Alice（11月28日 05:37）：“交接改到3月10号了”"


def test_the_whole_prompt_is_read_in_the_order_of_time() -> None:
    known = f"""{KNOWN_HEADING}

{NOW}

{GROUP_FACTS}
[f1 · 2026-11-20 09:00 · earlier, until 2026-11-21 09:00] Alice: fair time: the fair is on 3 March
[f2 · 2026-11-21 09:00] 陈晨 about Bob: fair time: the fair is on 10 March

{RECALLED}
[2026-11-19 08:00] Alice: @Memo the fair is on 1 March
[2026-11-19 08:00] [you]: The fair is on 1 March.

{QUESTION_HEADING}
Bob: @Memo when is the fair?"""
    rules = {"role": "system", "content": "You are Memo, a colleague in Feishu."}
    window = ["[2026-11-22 09:00] Alice: the fair moved to 12 March", "Bob: ok, 12 March it is"]
    said = [{"role": "user", "content": text} for text in (*window, known)]
    situation = situation_of(Request([rules, *said], Toolbox(())))

    assert [line.text for line in situation.lines if not line.own] == [
        "the fair is on 1 March",
        "the fair is on 3 March",
        "the fair is on 10 March",
        "the fair moved to 12 March",
        "ok, 12 March it is",
    ]
    assert [line.when for line in situation.lines[-2:]] == ["2026-11-22 09:00", "2026-11-22"]
    assert next_step(situation) == "Alice, 22 Nov at 09:00: “the fair moved to 12 March”"
    without = replace(situation, lines=situation.lines[:-2])
    answer = str(next_step(without))
    assert answer.splitlines()[2] == "- 陈晨, 21 Nov at 09:00: “the fair is on 10 March”"
    assert "3 March" not in answer, "the prompt says that it was replaced"


@every_row(
    ("lines", "correction", "fact"),
    [
        ([("Bob", "when is the fair?"), ("Memo", "Alice: the fair is on 3 March.")],
         "no, it is now 14 March", {"the_fair_time": "the fair is on 14 March"}),
        ([("Bob", "when is the fair?"), ("Memo", "Alice: the fair is on 3 March."),
          ("Alice", "where is lunch?"), ("Memo", "陈晨: lunch is in room 5.")],
         "no, it's on 14 March", {"the_fair_time": "the fair is on 14 March"}),
        ([("Bob", "交接是哪天？"), ("Memo", "陈晨：交接在3月3号。")],
         "不对，是3月12号", {"交接_time": "交接在3月12号"}),
        ([("Bob", "交接是哪天？"), ("Memo", "陈晨：交接在3月3号。")],
         "不是3月3号，是3月12号", {"交接_time": "交接在3月12号"}),
        ([], "no, our launch is at gate 9", {"our_launch_at": "our launch is at gate 9"}),
    ],
)  # fmt: skip
def test_a_correction_is_of_the_last_answer_to_the_same_person(
    lines: list[tuple[str, str]], correction: str, fact: dict[str, str]
) -> None:
    before = [("Alice", "the fair is on 3 March"), ("陈晨", "lunch is in room 5"),
              ("陈晨", "交接在3月3号")]  # fmt: skip
    said = tuple(PromptLine(text, name, own=name == "Memo") for name, text in (*before, *lines))
    situation = Situation(correction, said, author="Bob", tools=TOOLS, own_name="Memo")
    call = Call("update_working_memory", {"scope": "thread", "patch": fact})
    assert next_step(situation) == call


def test_what_nobody_can_mean_is_not_corrected() -> None:
    assert next_step(Situation("no, it is now 14 March", tools=TOOLS)) == say("correct-what", "en")


def listed(rows: list[dict[str, object]]) -> Returned:
    outcome = ToolOutcome("…", "reminders-listed", {"reminders": rows})
    return Returned("list_reminders", outcome, WORDING)


PLAN = [
    ("tm_a", "stretch", "2026-12-01T09:00"),
    ("tm_b", "send the deck", "2026-12-04T15:00"),
    ("tm_c", "给客户发报价", "2027-03-03T10:00"),
    ("tm_d", "开会", "2026-12-07T10:00"),
]


@every_row(
    ("question", "id"),
    [
        ("cancel the Friday reminder", "tm_b"),
        ("取消周五的提醒", "tm_b"),
        ("取消第二个提醒", "tm_b"),
        ("cancel the second reminder", "tm_b"),
        ("cancel reminder 3", "tm_c"),
        ("cancel the last reminder", "tm_d"),
        ("取消最后一个提醒", "tm_d"),
        ("cancel the 3 March reminder", "tm_c"),
        ("取消3月3号的提醒", "tm_c"),
        ("cancel the reminder about the deck", "tm_b"),
        ("取消开会的提醒", "tm_d"),
        ("把报价的提醒取消掉", "tm_c"),
        ("取消第二个", "tm_b"),
        ("cancel the third one", "tm_c"),
        ("drop reminder 2", "tm_b"),
        ("delete the one on Friday", "tm_b"),
        ("get rid of the stretch reminder", "tm_a"),
        ("cancel reminder two", "tm_b"),
        ("cancel Friday's", "tm_b"),
        ("取消周五的", "tm_b"),
        ("把周五的取消掉", "tm_b"),
        ("删掉周五那个", "tm_b"),
        ("取消第 2 个", "tm_b"),
        ("no need to remind me to stretch any more", "tm_a"),
        ("stop reminding us about the deck", "tm_b"),
        ("never mind the stretch reminder", "tm_a"),
        ("不用提醒开会了", "tm_d"),
        ("报价的不用提醒了", "tm_c"),
        ("别再提醒我给客户发报价了", "tm_c"),
        ("cancel the 3pm one", "tm_b"),
        ("取消下午那个", "tm_b"),
        ("cancel the reminder", ""),
        ("cancel the tenth reminder", ""),
        ("cancel the Thursday reminder", ""),
        ("取消周四的提醒", ""),
        ("cancel the reminder about the fair", ""),
    ],
)
def test_a_reminder_is_chosen_by_number_day_or_words(question: str, id: str) -> None:
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in PLAN]
    wish = reminder_wishes.reminder_wish(question)
    assert wish
    step = reminders.next_reminder_step(wish, [listed(rows)], NOW, "en")
    if id:
        assert step == Call("cancel_reminder", {"reminder_id": id})
    else:
        assert str(step).startswith(say("ask-which", "en"))


@every_row(
    ("question", "ids"),
    [
        ("cancel reminders 1 and 2", "ab"),
        ("cancel the second and the fourth", "bd"),
        ("cancel 1, 3", "ac"),
        ("取消第一个和第三个", "ac"),
        ("取消第1、2个提醒", "ab"),
        ("cancel all of Friday's", "be"),
        ("cancel all the Friday reminders", "be"),
        ("取消周五的所有提醒", "be"),
        ("周五的两个都取消", "be"),
        ("cancel both on Friday", "be"),
        ("都取消吧", "abcde"),
        ("cancel all of them", "abcde"),
        ("把全部取消掉", "abcde"),
        ("cancel all but the first", "bcde"),
        ("cancel everything except the last one", "abcd"),
        ("cancel all reminders except the Friday ones", "acd"),
        ("取消除了第一个以外的所有提醒", "bcde"),
        ("除了最后一个都取消", "abcd"),
        ("只留开会的，其他都取消", "abce"),
        ("cancel them all", "abcde"),
        ("cancel the stretch and the plants one", "ae"),
        ("取消开会和报价的提醒", "dc"),
        ("cancel all but the ninth", ""),
        ("cancel the stretch and the piano one", ""),
        ("cancel both", ""),
        ("两个都取消", ""),
        ("cancel the second and the ninth", ""),
        ("cancel all of Thursday's", ""),
    ],
)
def test_several_reminders_are_chosen_at_once_or_none(question: str, ids: str) -> None:
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    plan = [*PLAN, ("tm_e", "water the plants", PLAN[1][2])]
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in plan]
    wish = reminder_wishes.reminder_wish(question)
    assert wish
    results = [listed(rows)]
    cancelled = ""
    while isinstance(step := reminders.next_reminder_step(wish, results, NOW, "en"), Call):
        gone = next(row for row in rows if row["id"] == step.arguments["reminder_id"])
        cancelled += gone["id"].removeprefix("tm_")
        outcome = ToolOutcome("…", "reminder-cancelled", gone)
        results.append(Returned("cancel_reminder", outcome, WORDING))
    assert cancelled == ids
    assert step.startswith(say("ask-which", "en")) is not bool(ids)


NOTES = [("note_a", "Buy milk"), ("note_b", "Travel plan"), ("note_c", "礼物")]


@every_row(
    ("question", "ids"),
    [
        ("delete notes 1 and 3", "ac"),
        ("delete all my notes", ""),
        ("delete all notes except the first", "bc"),
        ("delete the milk and the travel notes", "ab"),
        ("删除第一条和第三条笔记", "ac"),
        ("把笔记全删了", ""),
        ("除了第一条都删掉", "bc"),
        ("把三条笔记都删了", "abc"),
        ("delete both notes", ""),
        ("删除第一条和第九条笔记", ""),
        ("delete all notes except the ninth", ""),
    ],
)
def test_several_notes_are_deleted_at_once_or_none(question: str, ids: str) -> None:
    rows = [{"id": id, "title": title, "tags": []} for id, title in NOTES]
    outcome = ToolOutcome("…", "notes-listed", {"notes": rows})
    returned, deleted = [Returned("list_notes", outcome)], ""
    situation = Situation(question, tools=TOOLS | {"delete_note"}, instructions=NOW)
    assert next_step(situation) == Call("list_notes", {})
    while True:
        step = next_step(replace(situation, results=tuple(returned)))
        if not isinstance(step, Call):
            break
        deleted += step.arguments["note_id"].removeprefix("note_")
        gone = ToolOutcome("…", "note-deleted", {"title": "x"})
        returned.append(Returned("delete_note", gone))
    assert deleted == ids
    refusals = [
        say(key, language, titles="\0").partition("\0")[0]
        for key in ("which-note-is-here", "not-all-at-once")
        for language in ("en", "zh")
    ]
    assert step.startswith(tuple(refusals)) is not bool(ids)


@every_row(
    ("request_text", "answer", "call"),
    [
        (
            "remind me tomorrow to call mum",
            "at 7pm",
            {"text": "call mum", "at": "2026-11-29T19:00"},
        ),
        ("remind us on Monday to pay", "Tuesday at 9", {"text": "pay", "at": "2026-12-01T09:00"}),
        ("remind me to stretch", "tomorrow at 10", {"text": "stretch", "at": "2026-11-29T10:00"}),
        ("remind me tomorrow at 6 to jog", "6 am", {"text": "jog", "at": "2026-11-29T06:00"}),
        ("明天提醒我打电话", "晚上七点", {"text": "打电话", "at": "2026-11-29T19:00"}),
        ("提醒我喝水", "明天上午十点", {"text": "喝水", "at": "2026-11-29T10:00"}),
    ],
)
def test_a_time_given_after_the_question_when_completes_the_reminder(
    request_text: str, answer: str, call: dict[str, str]
) -> None:
    question = next_step(Situation(request_text, tools=TOOLS, instructions=NOW))
    asked = PromptLine(f"@Alice {question}", own=True)
    lines = (PromptLine(request_text, "Alice"), asked)
    step = next_step(Situation(answer, lines, author="Alice", tools=TOOLS, instructions=NOW))
    assert isinstance(step, Call)
    assert call.items() <= step.arguments.items()
    other = Situation("where is lunch?", lines, author="Alice", tools=TOOLS, instructions=NOW)
    assert next_step(other) == Call("recall", {"query": "where is lunch?", "scope": "everywhere"})


@every_row(
    ("question", "about", "time"),
    [
        ("actually make it 3pm", "dentist", "3pm"),
        ("no, move it to Friday", "dentist", "Friday"),
        ("还是改成三点吧", "dentist", "三点"),
        ("sorry, make that 10:30", "dentist", "10:30"),
        ("sorry, I meant 5pm", "dentist", "5pm"),
    ],
)
def test_another_time_after_a_receipt_is_for_that_reminder(
    question: str, about: str, time: str
) -> None:
    before = PromptLine("set a reminder for Thursday 2pm: dentist", "Alice")
    receipt = PromptLine("OK, I'll remind you on 3 Dec at 14:00: “dentist”", own=True)
    lines = (before, receipt, PromptLine(question, "Alice"), receipt)
    for earlier in (lines[:2], lines):
        situation = Situation(question, earlier, author="Alice", tools=TOOLS, instructions=NOW)
        assert next_step(situation) == Call("list_reminders", {})
        wish = reminder_wishes.reminder_wish(
            request_forms.completed(question, lines[0].text, receipt.text)
        )
        assert wish
        assert (wish.kind, wish.about, wish.text) == ("change", about, time)


@every_row("answer", ["the second one", "2", "第二个"])
def test_a_number_given_after_the_question_which_cancels_that_reminder(answer: str) -> None:
    asked = PromptLine(say("ask-which", "en") + "\n\n2 reminders: …", own=True)
    lines = (PromptLine("cancel the Friday one", "Alice"), asked)
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in PLAN]
    situation = Situation(answer, lines, author="Alice", tools=TOOLS, instructions=NOW)
    step = next_step(replace(situation, results=(listed(rows),)))
    assert step == Call("cancel_reminder", {"reminder_id": "tm_b"})


@every_row(
    ("question", "numbers"),
    [
        ("what reminders are there on Friday?", [2]),
        ("周五有什么提醒？", [2]),
        ("when is the deck reminder?", [2]),
        ("开会的提醒是几点？", [4]),
        ("还剩哪些提醒？", [1, 2, 3, 4]),
        ("which reminders are there on Thursday?", [1, 2, 3, 4]),
    ],
)
def test_a_list_of_reminders_is_of_the_day_or_the_words_and_keeps_its_numbers(
    question: str, numbers: list[int]
) -> None:
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in PLAN]
    wish = reminder_wishes.reminder_wish(question)
    assert wish
    lines = str(reminders.next_reminder_step(wish, [listed(rows)], NOW, "en")).splitlines()
    assert [int(line.split(".")[0]) for line in lines[2:]] == numbers


@every_row(
    ("question", "answer"),
    [
        ("what time is it?", "It's Sat 28 Nov at 10:00."),
        ("今天星期几？", "现在是 11月28日（周六）10:00。"),
        ("can you read PDFs?", say("only-read", "en")),
        ("你是机器人吗？", say("about-me", "zh", name="Memo")),
        ("how are you?", say("greeting", "en")),
        ("bye!", say("goodbye", "en")),
        ("好的", say("acknowledged", "zh")),
        ("👍", say("acknowledged", "en")),
    ],
)
def test_what_nobody_can_have_told_is_answered_without_saying_so(
    question: str, answer: str
) -> None:
    recalled = Returned("recall", ToolOutcome("", "recalled"))
    assert next_step(Situation(question, instructions=NOW, results=(recalled,))) == answer


@every_row("question", ["who told you that?", "are you sure?", "你怎么知道的？", "谁说的？"])
def test_the_source_of_the_last_answer_is_told_again(question: str) -> None:
    answer = told(question, ("Alice", "the fair is on 3 March"), ("Bob", "when is the fair?"),
                  ("Memo", "Alice: “the fair is on 3 March”"))  # fmt: skip
    assert "the fair is on 3 March" in answer
    assert "Alice" in answer


@every_row(
    ("question", "may"),
    [("when is Alice's birthday?", False), ("when is Bob's birthday?", True),
     ("when is my birthday?", True), ("Bob 的生日是哪天？", True)],
)  # fmt: skip
def test_another_persons_matter_answers_nothing(question: str, may: bool) -> None:
    lines = [("陈晨", "Bob's birthday is 4 May"), ("陈晨", "Bob 的生日是 5 月 4 日")]
    assert ("4 May" in told(question, *lines) or "5 月" in told(question, *lines)) is may


@every_row(
    ("question", "statement"),
    [
        ("What's the wifi password?", "Acme's wifi password is tulip42"),
        ("who reviews the spec?", "Mark reviews the spec"),
        ("what is the other option?", "another option is room 5"),
        ("who has turn three?", "turn three belongs to Vera"),
        ("重新开放是哪天？", "重新开放时间是周五"),
        ("开启时间是几点？", "开启时间是九点"),
    ],
)
def test_a_statement_that_begins_like_a_request_is_one(question: str, statement: str) -> None:
    assert statement in told(question, ("Alice", statement))


@every_row(
    ("text", "name", "argument"),
    [
        ("send a digest every day at 6pm", "digest", "every day 6pm"),
        ("post a summary here on weekdays at 18:00", "digest", "weekdays 18:00"),
        ("每天下午六点发摘要", "digest", "每天 下午六点"),
        ("每周五17:00发总结", "digest", "每周五 17:00"),
        ("send a summary every weekday at 18:00", "digest", "weekdays 18:00"),
        ("post a digest every weekday morning at 9", "digest", "weekdays 9am"),
        ("turn off the digest", "digest", "off"),
        ("关掉每日摘要", "digest", "off"),
        ("speak Chinese please", "language", "zh"),
        ("请用英文回答", "language", "en"),
        ("start over", "new", ""),
        ("what commands are there?", "help", ""),
        ("有什么命令？", "help", ""),
        ("why didn't you answer me?", "why", ""),
        ("你为什么不理我？", "why", ""),
        ("disconnect my account", "connect", "off"),
        ("断开我的账号", "connect", "off"),
        ("no more summaries please", "digest", "off"),
        ("以后不用发总结了", "digest", "off"),
        ("show me your settings", "settings", ""),
        ("what settings do you have?", "settings", ""),
        ("看看你的设置", "settings", ""),
        ("有什么设置？", "settings", ""),
        ("only answer when mentioned", "mode", "mention"),
        ("只在@你的时候回答", "mode", "mention"),
        ("stop answering questions nobody asked you", "proactive", "off"),
        ("别主动插话", "proactive", "off"),
        ("change your language to German", "language", "german"),
        ("用英文回答我", "language", "en"),
        ("why are you not answering?", "why", ""),
    ],
)
def test_a_command_is_asked_for_in_plain_words(text: str, name: str, argument: str) -> None:
    meant = command_meant(text)
    assert meant
    assert (meant.name, meant.argument) == (name, argument)
    if argument and name == "digest":
        assert parse_argument(argument).kind in ("schedule", "off")


@every_row("text", ["I speak Chinese", "why did you invite Bob?", "the digest is off topic",
                    "every day at 6pm we meet", "我们用中文写文档", "the settings changed",
                    "答疑只在周五", "别主动加班", "only answer the first question",
                    "公司设置了门禁"])  # fmt: skip
def test_talk_is_no_command(text: str) -> None:
    assert command_meant(text) is None


def test_all_reminders_are_cancelled_one_after_the_other() -> None:
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in PLAN[:2]]
    gone = [
        Returned("cancel_reminder", ToolOutcome("…", "reminder-cancelled", row), WORDING)
        for row in rows
    ]
    for question in ("cancel all my reminders", "取消所有提醒"):
        wish = reminder_wishes.reminder_wish(question)
        assert wish
        steps = [
            reminders.next_reminder_step(wish, [listed(rows), *gone[:done]], NOW, "en")
            for done in range(3)
        ]
        assert steps[:2] == [Call("cancel_reminder", {"reminder_id": row["id"]}) for row in rows]
        assert str(steps[2]).splitlines() == [
            "Reminder cancelled: “stretch”",
            "Reminder cancelled: “send the deck”",
        ]


def test_without_reminders_nobody_is_asked_which_one() -> None:
    wish = reminder_wishes.reminder_wish("cancel the one on Friday")
    assert wish
    nothing = Returned("list_reminders", ToolOutcome("…", "no-reminders"), WORDING)
    told = reminders.next_reminder_step(wish, [nothing], NOW, "en")
    assert told == WORDING.tell(nothing.outcome, "en")


@every_row(
    ("question", "call"),
    [
        ("move the Friday one to Monday at 10", {"reminder_id": "tm_b", "at": "2026-11-30T10:00"}),
        ("把周五那个改到周一上午十点", {"reminder_id": "tm_b", "at": "2026-11-30T10:00"}),
        ("push the Friday one to Monday", {"reminder_id": "tm_b", "at": "2026-11-30T15:00"}),
        ("把周五那个改到周一", {"reminder_id": "tm_b", "at": "2026-11-30T15:00"}),
        ("move the Friday one to 11:30", {"reminder_id": "tm_b", "at": "2026-12-04T11:30"}),
        ("把周五那个改到十一点半", {"reminder_id": "tm_b", "at": "2026-12-04T11:30"}),
        (
            "delay the deck reminder by half an hour",
            {"reminder_id": "tm_b", "at": "2026-12-04T15:30"},
        ),
        ("把周五那个改到九点半", {"reminder_id": "tm_b", "at": "2026-12-04T09:30"}),
        ("把周五那个改到四点半", {"reminder_id": "tm_b", "at": "2026-12-04T16:30"}),
        ("move the Friday one to 4:30", {"reminder_id": "tm_b", "at": "2026-12-04T16:30"}),
        ("报价的提醒推迟两天", {"reminder_id": "tm_c", "at": "2027-03-05T10:00"}),
    ],
)
def test_the_one_of_a_day_is_moved(question: str, call: dict[str, str]) -> None:
    same = {"now": "2026-11-28T10:00", "repeats": "once", "for_all": True, "for_author": False}
    rows = [same | {"id": key, "text": text, "at": at, "people": []} for key, text, at in PLAN]
    wish = reminder_wishes.reminder_wish(question)
    assert wish
    step = reminders.next_reminder_step(wish, [listed(rows)], NOW, "en")
    assert step == Call("change_reminder", call)


@every_row(
    ("text", "argument"),
    [
        ("digest", ""),
        ("summary please", ""),
        ("digest of this week", "week"),
        ("what did we talk about yesterday?", "yesterday"),
        ("summarize this thread", "thread"),
        ("give me a recap of last week", "last week"),
        ("what did I miss today?", "today"),
        ("本周摘要", "week"),
        ("昨天聊了什么", "yesterday"),
        ("sum up the last hour", "today"),
        ("what happened here while I was away?", ""),
        ("what has been decided so far?", ""),
        ("大家刚才聊啥了", "today"),
        ("总结一下最近一小时", "today"),
        ("帮我捋一捋今天的重点", "today"),
        ("出个会议纪要", ""),
        ("目前定了哪些事？", ""),
        ("这周大家聊了什么？", "week"),
        ("总结一下上周的讨论", "last week"),
        ("总结一下", ""),
    ],
)
def test_a_digest_is_of_the_period_that_is_named(text: str, argument: str) -> None:
    meant = command_meant(text)
    assert meant
    assert (meant.name, meant.argument) == ("digest", argument)


@every_row(
    ("text", "name"),
    [
        *((one, "quiet") for one in ("please be quiet", "shut up please", "请安静", "安静一下吧")),
        *((one, "quiet") for one in ("I'd like you to be quiet", "别说话了", "mute yourself now")),
        *((one, "quiet") for one in ("be quiet here", "mute yourself for an hour", "静音一个小时")),
        *((one, "resume") for one in ("you can talk again", "unmute", "可以说话了", "取消静音")),
        *((one, None) for one in ("the room is quiet", "is it quiet there?", "这里很安静")),
    ],
)
def test_silence_is_asked_for_in_plain_words(text: str, name: str | None) -> None:
    meant = command_meant(text)
    assert (meant.name if meant else None) == name


@every_row(
    ("question", "tool", "arguments"),
    [
        ("book a meeting with Bob tomorrow at 3pm", "book_meeting",
         {"title": "Meeting with Bob", "with_whom": ["Bob"], "at": "tomorrow at 3pm"}),
        ("arrange a meeting with Bob for half an hour tomorrow", "book_meeting",
         {"title": "Meeting with Bob", "minutes": 30}),
        ("帮我约Bob明天下午3点的会", "book_meeting",
         {"title": "与 Bob 的会议", "with_whom": ["Bob"], "at": "明天下午3点"}),
        ("make a task for Bob: send the deck by Friday", "make_task",
         {"title": "send the deck", "for_whom": "Bob", "due": "Friday"}),
        ("建个任务：交周报", "make_task", {"title": "交周报", "for_whom": "me"}),
        ("what's on my calendar tomorrow?", "look_at_calendar", {"when": "tomorrow"}),
        ("我今天有什么安排", "look_at_calendar", {"when": "今天"}),
        ("what tasks do I have?", "list_due_tasks", {"when": "this week"}),
        ("我今天要做什么", "list_due_tasks", {"when": "今天"}),
        ("when is Chen free tomorrow?", "look_at_calendar", {"who": ["Chen"], "when": "tomorrow"}),
        ("陈晨明天什么时候有空？", "look_at_calendar", {"who": ["陈晨"], "when": "明天"}),
        ("what is due this week?", "list_due_tasks", {"when": "this week"}),
        ("which tasks are overdue?", "list_due_tasks", {"when": "this week"}),
        ("我还有什么没做完的任务", "list_due_tasks", {"when": "this week"}),
        ("本周有什么任务到期？", "list_due_tasks", {"when": "本周"}),
        ("book an hour with Alice and Bob on Thursday, call it launch", "book_meeting",
         {"title": "launch", "at": "on Thursday", "with_whom": ["Alice", "Bob"], "minutes": 60}),
        ("约 Alice 和 Bob 周四开一小时的会，叫发布", "book_meeting",
         {"title": "发布", "at": "周四", "with_whom": ["Alice", "Bob"], "minutes": 60}),
        ("make a task of this for Bob by Friday", "make_task",
         {"title": "send the slides", "for_whom": "Bob", "due": "Friday"}),
        ("meet Bob tomorrow at 3", "book_meeting", {"with_whom": ["Bob"], "at": "tomorrow at 3"}),
        ("set up a 30 minute sync with Bob on Monday at 10:00", "book_meeting",
         {"with_whom": ["Bob"], "minutes": 30, "at": "on Monday at 10:00"}),
        ("明天下午 4 点跟 Bob 开会", "book_meeting", {"with_whom": ["Bob"], "at": "明天下午 4 点"}),
        ("约 Bob 和小周周二上午十点聊 30 分钟", "book_meeting",
         {"title": "与 Bob 和小周的会议", "with_whom": ["Bob", "小周"], "minutes": 30}),
        ("do I have time tomorrow afternoon?", "look_at_calendar", {"when": "tomorrow afternoon"}),
        ("assign Bob a task: fix the printer", "make_task",
         {"title": "fix the printer", "for_whom": "Bob"}),
        ("add a todo: water the plants", "make_task", {"title": "water the plants"}),
        ("加个待办：浇花", "make_task", {"title": "浇花"}),
        ("给 Bob 派个任务：修打印机", "make_task", {"title": "修打印机", "for_whom": "Bob"}),
        ("把这个建成 Bob 的任务，周五前完成", "make_task",
         {"title": "send the slides", "for_whom": "Bob", "due": "周五"}),
    ],
)  # fmt: skip
def test_a_calendar_or_task_is_asked_for_in_everyday_words(
    question: str, tool: str, arguments: dict[str, object]
) -> None:
    call = agenda_call(question, "send the slides")
    assert call
    assert call.tool == tool
    assert arguments.items() <= call.arguments.items()


@every_row(
    "text",
    ["今天约饭吗", "我约了Bob明天吃饭", "会议", "tasks are boring", "安排一下", "what is the plan?",
     "book club is on Thursday", "are you free software?", "我们约好周四见面",
     "make a note of this", "give me a hint: what", "arrange flowers",
     "remember that the launch is due"],
)  # fmt: skip
def test_talk_of_meetings_and_tasks_asks_for_nothing(text: str) -> None:
    assert agenda_call(text) is None


@every_row("label", ["Alice", "Alice (…ce5b)", "陈晨 (…a1b2)", "Ada Lovelace (…ce5b)"])
def test_the_words_of_somebody_whose_name_others_bear_are_understood(label: str) -> None:
    assert label_and_words(f"{label}: my reminders", "Memo") == (label, "my reminders")
