"""The project's own questions in other words and across languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.corpora.recall import Corpus, Question, load_bank

OTHER_WORDS, ACROSS = load_bank()
# Words that say nothing about the matter.
COMMON = frozenset(
    """a am and at did do does from get i in is my of on or our the to us we what when where which
    who why""".split()
)
ENDING = re.compile(r"(?:ing|ed|es|s|e)$")


def said(corpus: Corpus, question: Question) -> str:
    turns = corpus.conversations[question.conversation]
    return "\n".join(
        f"{turn.question}\n{turn.answer}" for turn in turns if turn.id in question.evidence
    )


def telling(text: str) -> set[str]:
    """Latin words without their endings, and pairs of Chinese characters."""
    words = set(re.findall(r"[a-z0-9]+", text.lower())) - COMMON
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    return {ENDING.sub("", word) for word in words} | {
        run[at : at + 2] for run in runs for at in range(len(run) - 1)
    }


def test_there_are_sixty_questions_of_each_sort_half_of_them_chinese() -> None:
    for corpus in (OTHER_WORDS, ACROSS):
        chinese = [one for one in corpus.questions if re.search(r"[\u4e00-\u9fff]", one.text)]
        assert (len(corpus.questions), len(chinese)) == (60, 30)


@pytest.mark.parametrize("question", OTHER_WORDS.questions, ids=lambda one: one.text)
def test_a_question_in_other_words_shares_no_telling_word_with_its_evidence(
    question: Question,
) -> None:
    assert not telling(question.text) & telling(said(OTHER_WORDS, question))


def test_a_question_across_languages_is_in_the_other_language_than_its_evidence() -> None:
    for question in ACROSS.questions:
        asked = bool(re.search(r"[\u4e00-\u9fff]", question.text))
        told = bool(re.search(r"[\u4e00-\u9fff]", said(ACROSS, question)))
        assert asked is not told, question.text


def test_the_answer_is_looked_for_in_vain_in_a_conversation_of_the_same_language() -> None:
    for question in OTHER_WORDS.questions:
        other = OTHER_WORDS.elsewhere(question)
        kinds = {one.kind for one in OTHER_WORDS.questions if one.conversation == other}
        assert other != question.conversation
        assert kinds == {question.kind}


def test_evidence_that_names_no_turn_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bank.txt"
    file.write_text("== Ann en\n@ 2026-03-01\n[van] We sold it. => Fine.\n?words car: What?\n")

    with pytest.raises(ValueError, match="car"):
        load_bank(file)
