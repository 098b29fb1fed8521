import random
from dataclasses import replace

import pytest

from memory.context import (
    OMISSION,
    SECTION_OVERHEAD,
    Calibration,
    FittedPrompt,
    PromptMessage,
    PromptSections,
    SectionShares,
    estimate_tokens,
    fit_sections,
)
from tests.support.rows import every_row

SECTIONS = PromptSections(
    question="When is our launch?",
    system="You are a helpful colleague.\nAnswer briefly.",
    working_memory='{"launch": "2026-03-03"}',
    registry="1. Pasta (ID: n-1)\n2. Pizza (ID: n-2)",
    summary="The team plans a launch.",
    transcript="Alice: 上线日期定了吗？\nBob: 三月三日",
    recalled="Alice, 12 February: the launch is on 3 March",
    history=(
        PromptMessage("user", "Remember that our launch is on 3 March", "Alice"),
        PromptMessage("assistant", "Noted."),
    ),
)
LINES = "\n".join(f"line {number}: something that was said" for number in range(200))
MESSAGES = tuple(
    PromptMessage(
        "user" if number % 2 == 0 else "assistant", f"message number {number} of the thread"
    )
    for number in range(100)
)


def test_everything_is_kept_as_it_was_when_it_fits():
    assembly = fit_sections(SECTIONS, 4000)

    assert assembly == FittedPrompt(SECTIONS, assembly.tokens, assembly.estimated_tokens)
    assert 0 < assembly.tokens == assembly.estimated_tokens < 300


def test_everything_is_kept_when_it_fits_exactly_and_something_goes_one_token_below():
    exact = fit_sections(SECTIONS, 4000).tokens

    assert fit_sections(SECTIONS, exact).sections == SECTIONS
    below = fit_sections(SECTIONS, exact - 1)
    assert below.sections != SECTIONS
    assert below.cut or below.dropped_messages


def test_history_loses_whole_messages_the_oldest_first():
    assembly = fit_sections(PromptSections("And now?", history=MESSAGES), 200)

    kept = assembly.sections.history
    assert 5 < len(kept) < 50
    assert kept == MESSAGES[-len(kept) :]
    assert assembly.dropped_messages == 100 - len(kept)


def test_a_message_too_long_for_the_budget_ends_the_history_there():
    history = (
        PromptMessage("user", "short"),
        PromptMessage("assistant", LINES),
        PromptMessage("user", "newest"),
    )

    assembly = fit_sections(PromptSections("And now?", history=history), 200)

    assert assembly.sections.history == (history[-1],)
    assert assembly.dropped_messages == 2


def test_the_transcript_loses_its_oldest_lines():
    kept = fit_sections(
        PromptSections("And now?", transcript=LINES), 200
    ).sections.transcript.splitlines()

    assert kept[0] == OMISSION
    assert kept[1:] == LINES.splitlines()[-len(kept) + 1 :]
    assert len(kept) > 5


@every_row("name", ["system", "working_memory", "registry", "summary", "recalled"])
def test_other_texts_lose_their_last_lines_and_say_so(name):
    assembly = fit_sections(replace(PromptSections("And now?"), **{name: LINES}), 200)

    kept = getattr(assembly.sections, name).splitlines()
    assert kept[-1] == OMISSION
    assert kept[:-1] == LINES.splitlines()[: len(kept) - 1]
    assert assembly.cut == (name,)


def test_of_a_single_line_that_is_too_long_a_part_is_kept():
    line = "飞书群聊" * 500

    assembly = fit_sections(PromptSections("然后呢？", summary=line), 200)

    kept = assembly.sections.summary.removesuffix(f"\n{OMISSION}")
    assert line.startswith(kept)
    assert 100 < len(kept) < 400


def test_of_a_line_that_is_too_long_each_token_of_room_holds_one_more_word():
    line = " ".join("a" * 500)
    texts = [fit_sections(PromptSections("?", summary=line), room).sections for room in range(60)]
    words = [one.summary.removesuffix(OMISSION).count("a") for one in texts]
    kept = [one for one in words if one]
    assert kept == [*range(1, len(kept) + 1)]
    assert len(kept) > 20


def test_of_a_recalled_line_that_is_too_long_the_beginning_is_kept():
    line = "".join(f"word{number} " for number in range(2000))

    assembly = fit_sections(PromptSections("And?", recalled=line, recalled_worth=(1.0,)), 200)

    kept = assembly.sections.recalled.removesuffix(f"\n{OMISSION}")
    assert kept
    assert line.startswith(kept)


def test_a_question_beyond_the_budget_is_still_whole_and_alone():
    question = "为什么？" * 500

    assembly = fit_sections(replace(SECTIONS, question=question), 100)

    assert assembly.sections == PromptSections(question)
    assert assembly.over_budget
    assert assembly.tokens > 100
    assert assembly.dropped_messages == 2
    assert len(assembly.cut) == 6


def test_the_system_text_comes_before_everything_but_the_question():
    crowded = PromptSections(
        "And now?", LINES[:2000], LINES, LINES, LINES, LINES, LINES, history=MESSAGES
    )

    assembly = fit_sections(crowded, estimate_tokens(LINES[:2000]) + 100)

    assert assembly.sections.system == crowded.system
    assert "system" not in assembly.cut


def test_when_all_are_too_long_each_gets_about_its_share():
    crowded = PromptSections(
        "And now?", "", LINES, LINES, LINES, LINES, LINES, history=MESSAGES * 10
    )

    assembly = fit_sections(crowded, 2000)

    spent = {
        name: estimate_tokens(getattr(assembly.sections, name))
        for name in ("working_memory", "registry", "summary", "transcript", "recalled")
    }
    for name, tokens in spent.items():
        share = 2000 * getattr(SectionShares(), name) / 20
        assert tokens + SECTION_OVERHEAD == pytest.approx(share, abs=30), name
    assert len(assembly.sections.history) > 30
    assert assembly.tokens > 1950


def test_what_one_section_does_not_need_flows_to_the_others():
    alone = fit_sections(PromptSections("And now?", transcript=LINES), 1000)
    beside_little = fit_sections(
        PromptSections("And now?", transcript=LINES, registry="1. Pasta"), 1000
    )

    assert alone.tokens > 950
    assert beside_little.tokens > 950
    assert beside_little.sections.registry == "1. Pasta"


def test_the_newest_message_is_kept_though_the_texts_would_fill_the_room():
    newest = PromptMessage("assistant", "word " * 250)
    crowded = PromptSections(
        "And now?", "", LINES, LINES, LINES, LINES, LINES, history=(*MESSAGES, newest)
    )

    assert fit_sections(crowded, 600).sections.history[-1:] == (newest,)


def test_calibration_shrinks_what_fits_into_the_same_budget():
    long = PromptSections("And now?", history=MESSAGES)

    plain = fit_sections(long, 500)
    costly = fit_sections(long, 500, Calibration(scale=1.6))

    assert len(costly.sections.history) < len(plain.sections.history)
    assert costly.tokens <= 500
    assert costly.tokens == Calibration(scale=1.6).reported_tokens(costly.estimated_tokens)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ValueError, match="'summary' must be above 0"):
        SectionShares(summary=0)


WORDS = [
    "launch",
    "三月三日",
    "note",
    "(ID: 3f0c)",
    "为什么",
    "🙂",
    "the",
    "of",
    "{",
    "}",
    "1234",
    "",
]


def _random_text(rng: random.Random, longest: int) -> str:
    words = rng.choices(WORDS, k=rng.randrange(longest))
    return "".join(word + rng.choice((" ", " ", "\n", "，", "")) for word in words)


def _random_sections(rng: random.Random) -> PromptSections:
    return PromptSections(
        _random_text(rng, 30),
        *(_random_text(rng, rng.choice((1, 10, 60))) for _ in range(6)),
        tuple(
            PromptMessage(
                rng.choice(("user", "assistant")), _random_text(rng, 12), rng.choice((None, "李雷"))
            )
            for _ in range(rng.randrange(8))
        ),
    )


def test_no_prompt_exceeds_its_budget_in_ten_thousand_random_assemblies():
    rng = random.Random(20260303)
    pool = [_random_sections(rng) for _ in range(1000)]
    over = 0
    for number in range(10_000):
        sections = rng.choice(pool)
        budget = rng.randrange(400)
        calibration = Calibration(scale=rng.uniform(0.5, 2))

        assembly = fit_sections(sections, budget, calibration)

        over += assembly.over_budget
        kept = assembly.sections
        assert kept.question == sections.question
        assert kept.history == sections.history[len(sections.history) - len(kept.history) :]
        if assembly.over_budget:
            assert kept == PromptSections(sections.question)
        else:
            assert assembly.tokens <= budget
            if number % 10 == 0:
                assert fit_sections(kept, 100_000, calibration).tokens == assembly.tokens
    assert 500 < over < 5000


def test_what_was_recalled_loses_the_lines_worth_least_and_keeps_the_newest() -> None:
    lines = [
        f"[2026-05-0{day} 12:00] Ann: the deadline of the launch, told {day}" for day in range(1, 9)
    ]
    worth = (0.5, 3.0, 0.4, 2.5, 0.3, 0.2, 0.1, float("inf"))

    fitted = fit_sections(
        PromptSections(question="When is it?", recalled="\n".join(lines), recalled_worth=worth), 160
    )

    kept = [line for line in fitted.sections.recalled.splitlines() if line in lines]
    assert lines[-1] in kept, "the newest"
    assert {lines[1], lines[3]} <= set(kept), "the best"
    assert lines[6] not in kept
    assert kept == sorted(kept), "in the order of time"
