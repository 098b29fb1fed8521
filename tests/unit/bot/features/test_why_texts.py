"""There are words for each reason, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.answering.texts import failure_cause
from bot.features.help import decision_explanation, short_explanation
from bot.listening.conversation_store import PastDecision
from bot.listening.cues import Cue
from bot.listening.decisions import AddressedBy, Reason
from bot.text.languages import LANGUAGES, Language, Sentence
from tests.support.rows import every_row

REASONS = set(Reason) - {Reason.LLM_JUDGE, Reason.NO_TRIGGER}
VERDICTS = ("yes", "no", "timeout", "error")
AT = datetime(2026, 3, 3, 14, 5, 6, tzinfo=UTC)


def decided(reason: Reason, **more: object) -> PastDecision:
    known = {"cue": None, "since_bot_ms": None, "verdict": None, "respond": False, **more}
    return PastDecision("om_1", "ou_bob", reason=reason.value, at_ms=0, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_reason_is_told_in_its_own_words(language: Language) -> None:
    cases = [
        *(decided(reason, since_bot_ms=5000) for reason in REASONS),
        *(decided(Reason.LLM_JUDGE, verdict=verdict) for verdict in VERDICTS),
        *(decided(Reason.NO_TRIGGER, cue=cue, since_bot_ms=300_000) for cue in (None, *Cue)),
    ]
    told = [decision_explanation(case, "Bob", AT, 60, language) for case in cases]
    assert len(set(told)) == len(told)
    for text in told:
        assert "{" not in text
        assert "Bob" in text
        assert "14:05:06" not in text
        assert "14:05" in text


def test_the_message_is_quoted_where_its_words_are_kept() -> None:
    asked = decided(
        Reason.EXPLICIT_TRIGGER, respond=True, cue="mention", words="is *it*\nopen? " * 9
    )
    english = decision_explanation(asked, "Bob", AT, 60, "en")
    assert english.startswith("I **answered** Bob's “is ")
    assert "…” because it mentioned me." in english
    assert "\n" not in english
    assert "*it*" not in english
    short = decided(Reason.RATE_LIMITED, cue="mention", words="开放吗？")
    chinese = decision_explanation(short, "", AT, 60, "zh")
    assert chinese.startswith("我**没有回答**“开放吗？”，因为")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_became_of_a_question_is_told(language: Language) -> None:
    outcomes = ("answered", "apologised", "refused", "stopped", "undelivered", "taken_back")
    told = [
        decision_explanation(
            decided(Reason.MODE_ALL, respond=True, outcome=outcome), "Bob", AT, 60, language
        )
        for outcome in outcomes
    ]
    assert len(set(told)) == len(outcomes)
    assert not any("{" in text for text in told)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_over_the_limit_was_not_answered_whether_that_was_said_or_not(
    language: Language,
) -> None:
    told = decided(Reason.RATE_LIMITED, respond=True, outcome="refused", words="hi?")
    skipped = decided(Reason.RATE_LIMITED, respond=False, words="hi?")
    assert decision_explanation(told, "", AT, 60, language) == decision_explanation(
        skipped, "", AT, 60, language
    )


@every_row("reason", ["wrong_key", "quota_used_up", "timeout", "given_up", "status_500"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_apology_names_its_cause_as_operators_read_it(reason: str, language: Language) -> None:
    sorry = decided(
        Reason.MODE_ALL, respond=True, outcome="apologised", outcome_reason=reason, words="hi?"
    )
    cause = failure_cause("apologised", reason, language)
    assert f"：{cause}。" in (told := decision_explanation(sorry, "", AT, 60, language)) or (
        f": {cause}. " in told
    )


def test_a_rate_limited_question_is_not_told_that_it_mentioned_me() -> None:
    told = short_explanation(False, Reason.RATE_LIMITED, AddressedBy.MENTION)
    assert told == short_explanation(False, Reason.RATE_LIMITED)
    assert "minute" in told.en if told else ""


def test_it_says_whether_it_spoke_and_when_it_had_spoken_before() -> None:
    spoke = decided(Reason.RECENT_FOLLOWUP, respond=True, since_bot_ms=12_000)
    assert "I **answered**" in decision_explanation(spoke, "Bob", AT, 60, "en")
    assert "12 seconds earlier" in decision_explanation(spoke, "Bob", AT, 60, "en")
    assert "12 秒前" in decision_explanation(spoke, "", AT, 60, "zh")
    late = decided(Reason.NO_TRIGGER, cue=Cue.FOLLOW_UP, since_bot_ms=300_000)
    assert "5 minutes earlier" in decision_explanation(late, "Bob", AT, 60, "en")
    assert "60 seconds" in decision_explanation(late, "Bob", AT, 60, "en")


@pytest.mark.parametrize("respond", [True, False])
@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_alone_has_words_in_both_languages(reason: Reason, respond: bool) -> None:
    told = short_explanation(respond, reason)
    assert told

    assert told.en.startswith("Answered: " if respond else "Kept silent: ")
    assert told.zh.startswith("回答了：" if respond else "没有回答：")
    assert not {"{", "}", "_"} & set(told.en + told.zh)


def test_how_the_bot_was_addressed_is_named() -> None:
    told = {
        address: short_explanation(True, Reason.EXPLICIT_TRIGGER, address)
        for address in AddressedBy
    }
    assert told[AddressedBy.MENTION] == Sentence(
        "Answered: it mentioned me.", "回答了：这条消息 @ 了我。"
    )
    assert len({one.en for one in told.values() if one}) == len(AddressedBy)
