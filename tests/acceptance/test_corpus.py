"""The recorded corpus: the real bot does what the recordings say, step by step."""

from __future__ import annotations

import pytest

from tests.corpus import recordings
from tests.corpus.__main__ import report
from tests.corpus.bots import Town
from tests.corpus.recordings import Shared
from tests.corpus.replaying import Task, replay, tasks
from tests.support import postgres

# About forty turns of everything that answers, keeps, forgets and stays silent.
SHORT = (
    "asking_subjects.en",
    "conversation_silence.zh",
    "keeping_notes.zh",
    "commands_fresh.en",
    "cards_private.en",
)


@pytest.fixture
def town(postgres_server: postgres.Server, migrated_template: str) -> Town:
    return Town(postgres_server, migrated_template)


def reported(town: Town, wanted: list[Task]) -> str:
    shared = Shared.load()
    played = replay(town, wanted)
    return "".join(text for task in wanted for text in report(task, played[task], shared))


def test_the_bot_does_what_a_few_recordings_say(town: Town) -> None:
    assert reported(town, tasks(SHORT, ("postgres",))) == ""


def test_a_bot_that_speaks_and_is_told_otherwise_is_reported(town: Town) -> None:
    changes = {"AUTO_MENTION": "off", "BOT_INSTRUCTIONS": "Answer like a harbour master."}
    (task,) = tasks(["commands_fresh.en"], ("postgres",))
    altered = Town(town.server, town.template, changes)
    found = reported(altered, [task])

    assert "step 2" in found
    assert "+    | Answer like a harbour master." in found, "the prompt"
    assert "\n-  | <at id=<Ann>></at> OK.\n+  | OK." in found, "the card"
    assert any(line.startswith("+") and '"content":"OK."' in line for line in found.split("\n"))


@pytest.mark.slow
def test_the_bot_does_what_all_recordings_say_over_both_memories(town: Town) -> None:
    wanted = tasks([], ("postgres", "supabase"))
    assert sum(recordings.counts({o.name: recordings.load(o.name) for o in wanted}).values()) >= 400
    assert reported(town, wanted) == ""
