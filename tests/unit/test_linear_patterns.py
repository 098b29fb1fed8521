"""Time grows with the length of a text and not with its square, for every pattern of the product.

The patterns are found in the modules, so a new one is covered as it is written.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support import depth
from tests.support.hostile_text import grows_too_fast, hostile_texts, pieces_of
from tests.support.patterns_in_use import Use, patterns_made_in_functions, uses

# Besides what nearly matches a pattern, which every run tries.
SHAPES = depth.count("HOSTILE_SHAPES", short=6, deep=16)
# Patterns for texts that their callers cut: they may be slower, up to these many characters.
CUT = {"bot.agents.offline.reminder_wishes.": 1000, "bot.agents.offline.agenda_requests.": 400}
# Not for texts of people and models: patterns of the code itself, read when it is loaded.
OF_CODE = ("bot.agents.choice:",)
# These make patterns of names and words of their own while the process works.
MADE_WHILE_WORKING = frozenset(
    {
        "bot/agents/choice.py: _pattern",
        "bot/agents/model_text/cleaner.py: _label",
        "bot/agents/offline/commands.py: _pattern",
        "bot/card_actions/confirmation.py: _repeated_words",
        "bot/agents/offline/prompt_reading.py: label_and_words",
        "bot/agents/prompts/tool_context.py: _in_order",
        "bot/features/history_import/reading.py: _any_pattern",
        "bot/text/spelling.py: full_name",
        "bot/text/spelling.py: identifier",
        "bot/features/own_memory/matching.py: _description",
        "bot/features/own_memory/matching.py: _has_another_subject",
        "bot/features/own_memory/matching.py: _names_another",
        "bot/features/own_memory/matching.py: _said_instead",
        "bot/features/own_memory/matching.py: _stands_in",
        "bot/features/private_answers/comparing.py: _is_said_of",
        "bot/features/private_answers/comparing.py: _named_before",
        "bot/feishu/fields.py: _pattern",
        "bot/listening/requests.py: pattern",
        "bot/listening/replies.py: _written_small",
        "bot/text/languages.py: _own_words",
        "memory/dates.py: _expression",
        "memory/recall/dates.py: _rule",
        "memory/summary.py: _occurs",
    }
)


ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    f"{root}.{entry.stem}"
    for root in ("bot", "memory")
    for entry in (ROOT / root).iterdir()
    if not entry.name.startswith("__") and (entry.is_dir() or entry.suffix == ".py")
)


@functools.cache
def by_package() -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = defaultdict(list)
    for use in uses():
        if not use.place.startswith(OF_CODE):
            found[".".join(use.place.partition(":")[0].split(".")[:2])].append(use)
    return dict(sorted(found.items()))


def offence(use: Use) -> str | None:
    """The first hostile text that takes too long, with its times."""
    longest = next((size for place, size in CUT.items() if use.place.startswith(place)), None)
    pieces = pieces_of(use.pattern) if isinstance(use.pattern.pattern, str) else ()
    for name, make in hostile_texts(pieces, shapes=SHAPES):
        if found := grows_too_fast(use.examine, make, longest=longest):
            return f"{use.place}.{use.method}, {name}: {found}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_patterns_are_linear(package: str) -> None:
    assert not [found for use in by_package().get(package, ()) if (found := offence(use))]


def test_every_package_with_a_pattern_is_examined() -> None:
    assert by_package().keys() <= set(PACKAGES)


def test_patterns_made_while_the_process_works_are_known() -> None:
    assert set(patterns_made_in_functions()) == MADE_WHILE_WORKING


@pytest.mark.parametrize(
    "pattern",
    [r"\s+and\s", r"(?:a+)+b", r"\[([^\]]*)\]\(", r"^(.*?),\s*(.*?);$", r"(?:x.*)*y", r"[^?]+[?]"],
)
def test_the_measure_finds_slow_patterns(pattern: str) -> None:
    assert offence(Use("", re.compile(pattern), "finditer"))


@pytest.mark.parametrize("pattern", [r"(?<!\s)\s+and\s", r"[a-z]+\d", r"(?:(?:a|b|c|\s)+x?)+"])
def test_the_measure_lets_linear_patterns_pass(pattern: str) -> None:
    assert not offence(Use("", re.compile(pattern), "match"))
