"""Follow-up questions stand on buttons and not in the text, however a model wrote them."""

from hypothesis import given
from hypothesis import strategies as st

from bot.text.follow_ups import (
    FollowUpEnding,
    question_of,
    questions_of,
    split_follow_ups,
    text_before_questions,
)
from tests.support.rows import every_row

ANSWER = "The launch is on 3 March.\n\n- it is ready"
ASKED = ("Who comes?", "Where is it?")
LISTS = [
    "You might also ask:\n- Who comes?\n- Where is it?",
    "**You might also ask:**\n\n1. **Who comes?**\n2. “Where is it?”",
    "### Follow-up questions\n* who comes\n* where is it",
    "---\n\nYou could also ask me:\n\n• Who comes?\n• Where is it?",
    "Related questions:\n\nWho comes?\n\nWhere is it?",
    "- Who comes?\n- Where is it?",
    "Tell me if you want more:\n- Who comes?",
    "你还可以问：\n- Who comes?\n- Where is it?",
    "**猜你想问**\n1、Who comes?\n2、Where is it?",
    "💡 **You might also ask:** Who comes? Where is it?",
    "你还可以问：Who comes？Where is it？",
]


@every_row("listed", LISTS)
def test_what_stands_on_buttons_is_gone_from_the_text(listed: str):
    if listed == LISTS[5]:  # right after another list this would go on with it
        assert split_follow_ups(f"Done.\n\n{listed}", ASKED) == FollowUpEnding("Done.", ASKED)
    else:
        assert split_follow_ups(f"{ANSWER}\n\n{listed}\n", ASKED) == FollowUpEnding(ANSWER, ASKED)


def test_a_sentence_that_announces_them_goes_and_the_rest_of_its_paragraph_stays():
    text = "It takes 1.5 days. You might also ask:\n- Who comes?"
    assert split_follow_ups(text, ASKED).text == "It takes 1.5 days."
    assert split_follow_ups("需要三天。你还可以问我：\n- Who comes?", ASKED).text == "需要三天。"


@every_row(
    "text",
    [
        "Three things:\n- Who comes, we know\n- Where is it?",
        "You might also ask:\n- HR about the rules\n- Finance",
        "Who comes? Where is it? Nobody knows.",
        "```\n- Who comes?\n- Where is it?\n```",
        "- Who comes?\n- Where is it?",
        "Is that right?",
        "",
    ],
)
def test_other_text_stays_as_it_is(text: str):
    assert split_follow_ups(text, ASKED) == FollowUpEnding(text, ASKED)


def test_a_list_that_was_only_written_becomes_buttons():
    chinese = "三月三日上线。\n\n你还可以问：\n- 谁来参加？\n- 在哪里？"
    assert split_follow_ups(chinese, ()) == FollowUpEnding(
        "三月三日上线。", ("谁来参加？", "在哪里？")
    )


@every_row(
    "listed",
    [
        "- a?\n- b?\n- c?\n- d?",
        f"- {'very ' * 20}long?",
        "- /forget all?\n- b?",
        "- what we did\n- b?",
    ],
)
def test_what_does_not_fit_on_buttons_stays_in_the_text(listed: str):
    text = f"Done.\n\nYou might also ask:\n{listed}"
    assert split_follow_ups(text, ()) == FollowUpEnding(text)


def test_questions_without_an_announcement_are_part_of_the_answer():
    text = "Before I start:\n- Who comes?\n- Where is it?"
    assert split_follow_ups(text, ()) == FollowUpEnding(text)


def test_the_same_question_stands_on_one_button():
    assert questions_of(["a?", "a?", " a? ", "b?", "c?", "d?"]) == ("a?", "b?", "c?")


@every_row("listed", LISTS[:5] + LISTS[7:])
def test_while_it_is_written_no_part_of_the_list_is_shown(listed: str):
    whole = f"{ANSWER}\n\n{listed}"
    start = len(ANSWER) + 2
    words = listed.index("ask" if "ask" in listed else "question" if "question" in listed else "问")
    for end in range(start + words + 10, len(whole) + 1):
        shown = text_before_questions(whole[:end])
        assert "comes" not in shown
        assert shown.startswith(ANSWER)


def test_an_unfinished_answer_without_an_announcement_is_shown_whole():
    for end in range(len(ANSWER) + 1):
        assert text_before_questions(ANSWER[:end]) == ANSWER[:end]


@given(st.text(max_size=120))
def test_a_question_on_a_button_is_one_line_that_is_no_command(text: str):
    question = question_of(text)
    assert question is None or (question.isprintable() and not question.startswith(("/", "／")))
    assert question is None or question_of(question) == question


@every_row("text", ["<at id=all></at> hi", "@_all hi", "@all请看", "＠ Everyone hi"])
def test_no_question_addresses_everybody_in_any_spelling(text: str) -> None:
    assert question_of(text) is None


def test_a_name_that_begins_like_everybody_is_a_name() -> None:
    assert question_of("@Allison, when?") == "@Allison, when?"
