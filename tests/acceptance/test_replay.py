"""A turn's record: what it holds, that it goes with its turn, and the turn asked again from it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import clean_environment, eventually
from tests.acceptance.conftest import World, prompt_of
from tests.support.forking import run_script

pytestmark = pytest.mark.slow

OTHER_MODEL = "another-model"
LONG = "The launch is on 3 March, in the big hall."


def run(world: World, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **clean_environment(),
        **world.bot.environment,
        "OPENAI_BASE_URL": world.model.base_url,
    }
    return run_script(command[0], *command[1:], env=environment)


def record(world: World, turn: str) -> dict[str, Any]:
    def found() -> list[dict[str, Any]]:
        query = """select bot_private.told_record(bot_private.whole_record(r.short),
                     bot_private.given_ids(t.given_messages, t.given)) as record
                   from public.agent_turn_records r join public.agent_turns t on t.id = r.turn_id
                   where r.turn_id = %s"""
        return world.rows(query, turn)

    [row] = eventually(found, what="the record of the turn")
    return row["record"]


def talk(world: World) -> tuple[str, str]:
    """Two questions of Alice in one thread."""
    first, _ = world.ask("Alice", LONG)
    world.settled(first)
    second, _ = world.ask("Alice", "and who comes?", reply_to=first)
    world.settled(second)
    return first, second


def fingerprint(world: World) -> list[dict[str, Any]]:
    """Everything that a replay could have changed."""
    tables = ("messages", "turns", "working_memory", "notes", "working_memory_history")
    query = "select * from agent_{} where chat_id = %s order by 1"
    return [row for name in tables for row in world.rows(query.format(name), world.group)]


def test_a_record_holds_ids_and_times_and_no_words(world: World) -> None:
    _, second = talk(world)
    found = record(world, second)

    assert len(found["history_ids"]) == 3
    assert found["outcome"] == "answered"
    assert found["model_ms"] >= 0
    assert found["tokens_in"] > 0
    assert "3 March" not in json.dumps(found)
    assert "Alice" not in json.dumps(found)


def test_a_turn_is_asked_again_with_another_model_and_nothing_is_sent(world: World) -> None:
    _, second = talk(world)
    record(world, second)
    asked = world.model.requests()[-1]
    before, sent = fingerprint(world), len(world.platform.messages(world.group))
    world.model.control("script", {"steps": [{"text": "Nobody comes."}]})
    world.model.control("mode", {"mode": "script"})

    ran = run(world, "replay", second, "--model", OTHER_MODEL)

    assert ran.returncode == 0, ran.stderr
    assert "+Nobody comes." in ran.stdout
    assert OTHER_MODEL in ran.stdout
    again = world.model.requests()[-1]
    assert again["body"]["model"] == OTHER_MODEL
    assert prompt_of(again)[1:] == prompt_of(asked)[1:]
    assert fingerprint(world) == before
    assert len(world.platform.messages(world.group)) == sent


def test_other_instructions_are_told_and_tools_change_nothing(world: World, tmp_path: Path) -> None:
    _, second = talk(world)
    record(world, second)
    before = fingerprint(world)
    file = tmp_path / "new.txt"
    file.write_text("Answer like a pirate.")
    patch = {"scope": "thread", "patch": {"hall": "big"}}
    calls = [{"name": "update_working_memory", "arguments": patch}]
    world.model.control("script", {"steps": [{"tool_calls": calls}, {"text": "Arr, kept."}]})
    world.model.control("mode", {"mode": "script"})

    ran = run(world, "replay", second, "--instructions", str(file), "--json")

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["after"] == "Arr, kept."
    assert "update_working_memory" in found["compared"]["tools"]["after"]
    assert any("like a pirate" in text for _, text in prompt_of(world.model.requests()[-1]))
    assert fingerprint(world) == before


def test_facts_are_those_of_then(world: World) -> None:
    first, _ = talk(world)
    record(world, first)
    with psycopg.connect(world.database_url, autocommit=True) as connection:
        row = connection.execute("select * from agent_turns where id = %s", [first])
        turn = dict(zip([c.name for c in row.description], row.fetchone(), strict=True))
        connection.execute(
            "insert into agent_working_memory (conversation_id, user_id, actor_id, tenant_key,"
            " chat_id, scope, content) values (%s, %s, %s, %s, %s, 'chat', %s)",
            [turn["conversation_id"], turn["user_id"], turn["actor_id"], turn["tenant_key"],
             turn["chat_id"], json.dumps({"said later": "secret of tomorrow"})],
        )  # fmt: skip

    shown = run(world, "replay", first, "--prompt").stdout
    assert LONG in shown
    assert "secret of tomorrow" not in shown


def test_what_is_taken_back_takes_the_record_along(world: World) -> None:
    first, second = talk(world)
    record(world, first)
    record(world, second)
    world.platform.post("/recall", **{"message_id": first, "as": world.people["Alice"]})
    eventually(
        lambda: not world.rows("select from public.agent_turn_records where turn_id = %s", first),
        what="the record is gone",
    )

    assert run(world, "replay", first).returncode == 1
    shown = run(world, "replay", second, "--prompt")
    assert "3 March" not in shown.stdout
    assert "no longer exist" in shown.stderr


def test_a_look_is_kept(world: World) -> None:
    first, _ = talk(world)
    run(world, "replay", first, "--prompt")

    [kept] = world.rows("select * from feishu_bot.console_audit where about = %s", first)
    assert kept["action"] == "replay turn"


def test_what_cannot_be_done_is_said_in_a_sentence(world: World, tmp_path: Path) -> None:
    missing = tmp_path / "no such file"

    ran = run(world, "replay", "om_1", "--instructions", str(missing))

    assert ran.returncode == 2
    assert "choose a text file" in ran.stderr
    assert "Errno" not in ran.stderr
