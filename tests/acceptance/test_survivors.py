"""Of a message that is retracted no copy of ours survives, and what was said beside it stays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import eventually
from lab.doubles.sentinel import tables_with
from tests.acceptance.conftest import World
from tests.support.depth import count

OWN_PROCESSES = True
_PAIRS = [
    json.loads(line)
    for line in Path("tests/data/survivors.jsonl").read_text(encoding="utf-8").splitlines()
]
_STEP = max(1, len(_PAIRS) // count("SURVIVOR_PAIRS", short=8, deep=len(_PAIRS)))


@dataclass
class Talk:
    """Alice with the bot: in a thread of a group, or alone."""

    world: World
    chat: str
    root: str | None = None

    def ask(self, text: str, calls: list[dict[str, Any]], answer: str) -> str:
        """Asks, and has the model call those tools and give that answer."""
        rules = [{"reply": {"tool_calls": calls}}] if calls else []
        script = {"rules": [*rules, {"reply": {"text": answer}}]}
        self.world.model.control("script", script)
        self.world.model.control("mode", {"mode": "rules"})
        more = {"root_id": self.root} if self.root else {}
        asked, _ = self.world.ask("Alice", text, chat=self.chat, **more)
        self.world.settled(asked)
        if self.chat == self.world.group:
            self.root = self.root or asked
        return asked


def kept(key: str, value: str, scope: str = "thread") -> dict[str, Any]:
    return {"name": "update_working_memory", "arguments": {"scope": scope, "patch": {key: value}}}


def play(talk: Talk, number: int, withdrawn: str, stays: str) -> list[str]:
    """Retracts what was kept, read and repeated; returns what went wrong."""
    world = talk.world
    remember = "记住" if not withdrawn.isascii() else "remember that "
    source = talk.ask(remember + withdrawn, [kept(f"a_{number}", withdrawn)], "OK.")
    read = [
        {"name": "read_working_memory", "arguments": {}},
        kept(f"b_{number}", stays),
    ]
    beside = talk.ask(remember + stays, read, f"OK: {stays}")
    recalled = [{"name": "recall", "arguments": {"query": withdrawn}}]
    repeated = talk.ask("list it all", recalled, f"1. {withdrawn}\n2. {stays}")

    world.platform.post("/recall", **{"message_id": source, "as": world.people["Alice"]})

    def tables() -> set[str]:
        with psycopg.connect(world.database_url, autocommit=True) as database:
            return tables_with(database, withdrawn.lower())

    gone = "select 1 from recalled_messages where message_id = %s"
    eventually(lambda: world.rows(gone, source), what="it is retracted")
    wrong = [f"{withdrawn!r} stands in {sorted(tables())}"] if tables() else []
    if not world.stored(beside) or stays not in world.stored(beside)[0]["content"]:
        wrong.append(f"the answer about {stays!r} went with {withdrawn!r}")
    facts = "select 1 from agent_working_memory where content ->> %s = %s"
    if not world.rows(facts, f"b_{number}", stays):
        wrong.append(f"the fact {stays!r} went with {withdrawn!r}")
    if world.stored(repeated):
        wrong.append(f"the answer that repeats {withdrawn!r} stands")
    return wrong


@pytest.mark.parametrize("place", ["group", "p2p"])
def test_nothing_of_a_retracted_message_survives_and_its_twin_stays(
    world: World, place: str
) -> None:
    alice = world.people["Alice"]
    chats = world.platform.state()["chats"]
    alone = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and alice in c["members"])
    wrong = []
    for number, pair in list(enumerate(_PAIRS))[::_STEP]:
        here = world.in_a_new_group() if place == "group" else world
        talk = Talk(here, here.group if place == "group" else alone)
        wrong += play(talk, number, pair["withdrawn"], pair["stays"])
    assert not wrong, "\n".join(wrong)
