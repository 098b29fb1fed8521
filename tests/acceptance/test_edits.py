"""A message that was edited in place counts as it stands now, and nothing of the old text stays."""

from __future__ import annotations

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_taking_back import take_back, where
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


def edit(world: World, who: str, message: str, text: str) -> None:
    world.platform.post("/edit", **{"message_id": message, "as": world.people[who], "text": text})


@pytest.mark.parametrize(
    ("told", "again", "asked", "old", "new"),
    [
        (
            "remember that the quince harvest is in Ostermark",
            "remember that the quince harvest is in Westermark",
            "where is the quince harvest?",
            "Ostermark",
            "Westermark",
        ),
        (
            "请记住：榅桲采收在奥斯特村",
            "请记住：榅桲采收在韦斯特村",
            "榅桲采收在哪里？",
            "奥斯特村",
            "韦斯特村",
        ),
    ],
)
def test_the_new_text_replaces_the_old_everywhere(
    world: World, told: str, again: str, asked: str, old: str, new: str
) -> None:
    here = world.in_a_new_group()
    said, _ = here.ask("Alice", told)
    here.settled(said)
    edit(here, "Alice", said, f"@Memo {again}")

    question, answer = here.ask("Bob", asked)

    assert new in answer
    assert old not in answer
    here.settled(question)
    eventually(lambda: not where(here, old), what="nothing of the old text stays")
    (row,) = here.rows(
        "select content from agent_messages where turn_id = %s and role = 'user'", said
    )
    assert row["content"] == again
    eventually(
        lambda: all(one["deleted"] for one in here.answers(said)),
        what="the card that told the old text is withdrawn",
    )


def test_a_colleague_reads_what_holds_after_a_correction_its_edit_and_its_retraction(
    world: World,
) -> None:
    here = world.in_a_new_group()
    here.settled(here.ask("Alice", "remember that the quince fair is on 3 March")[0])
    corrected, _ = here.ask("Bob", "the quince fair moved to 10 March")
    here.settled(corrected)
    edit(here, "Bob", corrected, "@Memo the quince fair moved to 12 March")

    question, answer = here.ask("陈晨", "when is the quince fair?")
    here.settled(question)
    assert "12 March" in answer
    assert "10 March" not in answer
    eventually(lambda: not where(here, "10 March"), what="nothing of the old text stays")

    take_back(here, "Bob", corrected)
    eventually(lambda: not where(here, "12 March"), what="nothing of the correction stays")
    _, answer = here.ask("陈晨", "when is the quince fair?")
    assert "3 March" in answer.replace("13 March", "")
    assert "12 March" not in answer
