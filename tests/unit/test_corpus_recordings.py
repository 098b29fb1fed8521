"""Recordings of scenes: a changed prompt, card or row is reported; accepted changes keep why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.corpus import recordings
from tests.corpus.normalising import Placeholders, noon_zone
from tests.corpus.recordings import Shared, Step
from tests.corpus.replaying import tasks
from tests.support.rows import every_row

MEMORIES = ("postgres", "supabase")
EVERY = [one.name for one in tasks([], ("postgres",))]
KINDS = {"prompt": "    | ", "card": "  | ", "row": "+ agent_messages "}


@pytest.fixture(params=["commands_fresh.en", "cards_private.zh"])
def recorded(request: pytest.FixtureRequest) -> list[Step]:
    return recordings.load(str(request.param))


def changed(steps: list[Step], number: int, index: int) -> list[Step]:
    """The steps with one letter more in one item."""
    step = steps[number]
    items = [*step.items[:index], step.items[index] + "x", *step.items[index + 1 :]]
    return [*steps[:number], Step(step.title, items), *steps[number + 1 :]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_prompt_card_or_row_is_reported_with_its_step(
    recorded: list[Step], kind: str
) -> None:
    number, index = next(
        (number, index)
        for number, step in enumerate(recorded)
        for index, item in enumerate(step.items)
        if item.startswith(KINDS[kind]) and len(item) > len(KINDS[kind])
    )
    item = recorded[number].items[index]
    [(step, diff)] = recordings.differences(recorded, changed(recorded, number, index))
    assert step == number + 1
    assert f"\n-{item}\n+{item}x" in diff


def test_a_missing_item_and_a_missing_or_further_step_are_reported(recorded: list[Step]) -> None:
    assert [*recordings.differences(recorded, recorded)] == []
    first = Step(recorded[1].title, recorded[1].items[1:])
    assert [
        n for n, _ in recordings.differences(recorded, [recorded[0], first, *recorded[2:]])
    ] == [2]
    assert [n for n, _ in recordings.differences(recorded, recorded[:-1])] == [len(recorded)]
    assert [n for n, _ in recordings.differences(recorded[:-1], recorded)] == [len(recorded)]


def test_accepting_one_step_leaves_the_others_and_keeps_every_reason(
    recorded: list[Step], tmp_path: Path
) -> None:
    played = changed(changed(recorded, 1, 0), 2, 0)
    once = recordings.accept(recorded, played, "the first reason", only=2)
    assert [n for n, _ in recordings.differences(once, played)] == [3]
    again = recordings.accept(once, changed(played, 1, 0), "the second reason")
    recordings.save("scene.en", again, tmp_path)
    loaded = recordings.load("scene.en", tmp_path)
    assert loaded[1].accepted == ["the first reason", "the second reason"]
    assert loaded[2].accepted == ["the second reason"]
    assert not list(recordings.differences(loaded, again))


def test_a_text_that_many_steps_share_is_accepted_once(tmp_path: Path) -> None:
    long, other = "  | " + "word " * 40, "  | " + "term " * 40
    steps = [Step(f"step {n}", ["prompt", long, f"+ row {n}"]) for n in range(5)]
    shared = Shared.among(steps)
    (name,) = shared.texts
    recordings.save("scene.en", shared.fold(steps), tmp_path)
    recorded = recordings.load("scene.en", tmp_path)
    assert recorded[0].items == ["prompt", f"  {name}", "+ row 0"]
    played = [Step(one.title, ["prompt", other, one.items[2]]) for one in steps]
    assert recordings.replacement(name, recorded, shared.fold(played)) == other
    assert recordings.replacement(name, recorded, shared.fold(steps)) == ""
    shared.texts[name], shared.reasons[name] = other, ["accepted: another word"]
    shared.save(tmp_path)
    reloaded = Shared.load(tmp_path)
    assert reloaded == shared
    assert not list(recordings.differences(recorded, reloaded.fold(played)))


@every_row("hour", range(24))
def test_the_bots_clock_is_about_noon_whatever_the_hour(hour: int) -> None:
    now = datetime(2026, 11, 27, hour, 30, tzinfo=UTC)
    assert now.astimezone(noon_zone(now)).hour == 12


def test_what_differs_from_run_to_run_becomes_a_placeholder_and_nothing_else() -> None:
    zone = noon_zone(datetime.now(UTC))
    now = datetime.now(zone)
    shown = Placeholders(zone, {"ou_ann00001": "<Ann>"})
    shown.step = 3
    tomorrow = now + timedelta(days=1)
    said = {
        f"{now:%Y-%m-%d %H:%M} {now:%A}": "<now> <weekday>",
        f"{now:%H:%M} and 18:00": "<now> and 18:00",
        f"{tomorrow:%Y-%m-%d}T09:00:00": "<day+1> 09:00",
        f"{tomorrow:%-d %b} {tomorrow.month}月{tomorrow.day}日": "<day+1> <day+1>",
        "ou_ann00001 om_0123456789 om_0123456789": "<Ann> <om:3.1> <om:3.1>",
        "400 crowns at gate 7, 23 files": "400 crowns at gate 7, 23 files",
        "Took 0.2 s": "<took>",
    }
    for text, wanted in said.items():
        assert shown.of(text) == wanted
    shown.step = 4
    assert shown.of("om_9876543210 om_0123456789") == "<om:4.1> <om:3.1>"


def test_every_scene_is_recorded_and_every_recording_has_a_scene() -> None:
    files = {path.stem for path in recordings.FOLDER.glob("*.*.txt")}
    assert files == set(EVERY)


def test_a_line_names_only_texts_that_are_shared_and_none_is_left_over() -> None:
    named = {
        item.strip()
        for name in EVERY
        for step in recordings.load(name)
        for item in step.items
        if item.strip().startswith("§")
    }
    assert named == set(Shared.load().texts)
