"""Specialists as Markdown files that an operator drops into a folder: the real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.agents.specialists import FOLDER
from lab.doubles.processes import APP, ROOT
from tests.acceptance.conftest import World, prompt_of

DATA = Path(__file__).parents[1] / "data"
POET = DATA / "specialists" / "poet.md"
GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]
WORKER = [sys.executable, "-m", "bot.worker"]


def folder_with(folder: Path, *added: Path) -> Path:
    """A copy of the specialists that come with the bot, and what was dropped in."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in added:
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def bot_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = folder_with(tmp_path_factory.mktemp("dropped") / "specialists", POET)
    return {"SPECIALISTS_DIR": str(folder), "OPENAI_MODEL": "manager-model"}


@pytest.fixture
def poem(world: World) -> tuple[World, str, str]:
    """Alice asked for a poem and the manager handed that to the poet: world, question, card."""
    script = json.loads((DATA / "playbooks" / "specialist.json").read_text(encoding="utf-8"))
    world.model.control("script", script)
    first, answer = world.ask("Alice", "my fruit is apricot")
    assert answer.startswith(at(world, "Alice"))
    world.settled(first)
    world.model.forget()
    question, card = world.ask("Alice", "write me a poem", root_id=first)
    world.settled(question)
    return world, question, card


def test_the_manager_knows_a_specialist_by_its_file(poem: tuple[World, str, str]) -> None:
    world, _, _ = poem
    asked = tools_of(world.model.requests()[0])["ask_specialist"]["description"]
    for name in ("poet", "okr_coach", "summariser", "writer"):
        assert f"- {name}: " in asked


def test_a_specialist_is_told_its_instructions_and_the_thread(
    poem: tuple[World, str, str],
) -> None:
    world, _, _ = poem
    manager, poet, *_ = world.model.requests()
    system, *said = prompt_of(poet)
    assert "You are a poet of few words." in system[1]
    assert "You are a poet of few words." not in json.dumps(manager["body"])
    assert any(text.endswith("] Alice: my fruit is apricot") for _, text in said)
    assert said[-1][1].startswith("Task: a poem about apricots\n")
    assert "write me a poem" in said[-1][1]
    assert (manager["body"]["model"], poet["body"]["model"]) == ("manager-model", "poet-model")


def test_a_specialist_has_only_the_tools_it_lists(poem: tuple[World, str, str]) -> None:
    world, question, _ = poem
    manager, poet, refused, *_ = world.model.requests()
    assert set(tools_of(poet)) == {"current_time", "search_notes"}
    assert {"ask_specialist", "forget_fact"} <= set(tools_of(manager))
    assert refused["body"]["messages"][-1]["role"] == "tool", "it tried another one"
    assert world.rows("select 1 from agent_notes where chat_id = %s", world.group) == []
    [row] = world.stored(question)
    assert [(call["name"], call["ok"]) for call in row["tool_calls"]] == [("ask_specialist", True)]


def test_the_answer_of_a_specialist_that_mentions_nobody_addresses_nobody(
    poem: tuple[World, str, str],
) -> None:
    world, question, card = poem
    assert card.startswith("Roses are red")
    assert "<at" not in card
    [row] = world.stored(question)
    assert row["content"] == card

    _, next_answer = world.ask("Alice", "thanks", root_id=question)
    assert next_answer == f"{at(world, 'Alice')} Noted."


def at(world: World, who: str) -> str:
    return f"<at id={world.people[who]}></at>"


def tools_of(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name → function of the tools a model was offered."""
    return {tool["function"]["name"]: tool["function"] for tool in request["body"]["tools"]}


@pytest.mark.parametrize("command", [GUNICORN, WORKER], ids=["web with a worker", "worker"])
def test_an_invalid_file_stops_the_start_with_its_name_line_and_reason(
    tmp_path: Path, command: list[str]
) -> None:
    wrong = tmp_path / "gardener.md"
    wrong.write_text(POET.read_text(encoding="utf-8").replace("search_notes", "dig"), "utf-8")
    folder = folder_with(tmp_path / "specialists", wrong)

    status, sentence = start(command, tmp_path, SPECIALISTS_DIR=str(folder))

    assert status == 2
    assert sentence.startswith("gardener.md:4: unknown tool 'dig'; known: ")


@pytest.mark.parametrize("command", [GUNICORN, WORKER], ids=["web with a worker", "worker"])
@pytest.mark.parametrize("variable", ["SPECIALISTS_DIR", "MCP_CONFIG"])
def test_a_place_that_does_not_exist_is_named(
    tmp_path: Path, command: list[str], variable: str
) -> None:
    status, sentence = start(command, tmp_path, **{variable: str(tmp_path / "nowhere")})

    assert status == 2
    assert sentence.startswith(f"{variable} is ")
    assert "nowhere" in sentence


def start(command: list[str], folder: Path, **environment: str) -> tuple[int, str]:
    """Exit status and the one line on stderr of a process that does not get up."""
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), "DATA_DIR": str(folder)}
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**known, **APP, **environment},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    return ended.returncode, ended.stderr
