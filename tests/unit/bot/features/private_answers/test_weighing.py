"""Whether what was told elsewhere is about a question, and says more than the answer."""

from __future__ import annotations

from bot.features.private_answers.comparing import WeighedText, relevance_score, says_more
from memory.tables.private import ComparedTerms


def text(said: str, telling: str = "", everyday: str = "") -> WeighedText:
    return WeighedText(said, ComparedTerms(frozenset(telling.split()), frozenset(everyday.split())))


LAUNCH = text("When is the Falcon launch?", "falcon launch")
TOLD = text("Falcon launch is on 14 May", "falcon launch 14 may")


def test_what_is_asked_for_and_not_in_the_answer_is_more() -> None:
    assert says_more(LAUNCH, [TOLD], "I do not know.")
    assert says_more(LAUNCH, [TOLD], "The Falcon launch is on 3 May.")


def test_what_the_answer_or_the_group_says_already_is_not_more() -> None:
    assert not says_more(LAUNCH, [TOLD], "The launch is on May 14.")
    group = text("The launch of Falcon: 14 May", "falcon launch 14 may")
    assert not says_more(LAUNCH, [TOLD], "I do not know.", [group])


def test_what_is_less_about_the_question_than_what_the_group_was_told_is_not_offered() -> None:
    partly = text("Falcon costs 3,000 from 2 June on", "falcon cost 3000")
    question = text("When does Falcon get its new logo?", "falcon logo", "new")
    group = text("Falcon gets its new logo when Ann is back", "falcon logo ann", "new")

    assert relevance_score(question, partly) < relevance_score(question, group)
    assert not says_more(question, [partly], "When Ann is back.", [group])


def test_another_name_day_number_or_kind_is_another_matter() -> None:
    for told in ("Eagle launch is on 14 May", "The launch is on 14 May"):
        assert relevance_score(LAUNCH, text(told, "eagle launch")) == 0
    sprint = text("When does sprint 15 end?", "sprint", "end")
    assert relevance_score(sprint, text("sprint 14 ends on 2 May", "sprint", "end")) == 0
    team = text("Who leads the billing team?", "billing", "lead team")
    assert (
        relevance_score(team, text("Carla leads the search team", "carla search", "lead team")) == 0
    )
    office = text("上海办公室的门禁密码是多少？", "上海", "办公室 门禁 密码")
    other = text("北京办公室的门禁密码是 7788", "北京", "办公室 门禁 密码")
    assert relevance_score(office, other) == 0


def test_a_question_of_one_word_wants_to_know_what_that_is() -> None:
    assert (
        relevance_score(text("wifi?", "wifi"), text("The guest wifi is Acme", "guest wifi acme"))
        == 1
    )
    assert (
        relevance_score(text("lunch?", "", "lunch"), text("I had lunch with Kim", "kim", "lunch"))
        == 0
    )


def test_other_forms_of_a_word_are_that_word() -> None:
    asked = text("Is Tom allergic?", "tom allergic")
    assert relevance_score(asked, text("the allergies of Tom", "tom allerg")) > 0.9
