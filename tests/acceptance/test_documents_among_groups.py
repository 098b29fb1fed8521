"""Questions about documents with different readers, by five people in three groups: a group is
told what everybody there can open, who asks alone is offered the rest, and nobody anything else.

`DOCUMENT_QUESTIONS=n` asks so many, `DOCUMENT_SEED=n` repeats them.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_connect import connected
from tests.acceptance.test_private_answers import looked_up, shown_to
from tests.acceptance.test_welcome import newcomer
from tests.support import depth, profiles

pytestmark = pytest.mark.slow

QUESTIONS = depth.count("DOCUMENT_QUESTIONS", short=8, deep=60)
NAMES = ("Nora", "Omar", "Pia", "Quinn", "Rosa")
GROUPS = (NAMES, NAMES[:3], NAMES[2:])
KINDS = ("tenant", "tenant", "group", "group", "names", "closed", "department")


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


def shared(kind: str, dice: random.Random, people: list[str], groups: list[str]) -> dict[str, Any]:
    """A way of sharing of that kind."""

    def members(of: str, ids: list[str]) -> list[dict[str, Any]]:
        return [{"member_type": of, "member_id": one, "perm": "view"} for one in ids]

    match kind:
        case "tenant":
            return {"link": "tenant_readable"}
        case "group":
            return {"members": members("openchat", dice.sample(groups, 1))}
        case "names":
            return {"members": members("openid", dice.sample(people, 3))}
        case "department":
            department = members("opendepartmentid", ["od_1"])
            return {"members": [{**department[0], "people": dice.sample(people, 3)}]}
    return {}


def test_each_is_told_what_they_can_open_and_nothing_else(world: World) -> None:
    seed = int(os.environ.get("DOCUMENT_SEED") or depth.dice().getrandbits(32))
    dice = random.Random(seed)
    for name in NAMES:
        _, chat = newcomer(world, name)
        connected(world, chat, name)
    ids = [world.people[name] for name in NAMES]
    groups = []
    for members in GROUPS:
        people = [world.people[name] for name in members]
        made = world.platform.post("/chats", name="Group", members=people)
        groups.append(made["chat_id"])
        eventually(
            lambda: world.rows("select from chats where chat_id = %s", groups[-1]), what="a group"
        )
    documents = []
    for number in range(15):
        secret = f"Zephyr{number}quill"
        document = world.platform.post(
            "/documents",
            **{"as": dice.choice(ids)},
            title=f"Plan {number}",
            blocks=[{"kind": "text", "text": f"The code is {secret}."}],
            **shared(kind := dice.choice(KINDS), dice, ids, groups),
        )
        documents.append((document, secret, kind))
    readers = {
        one["token"]: {reader["open_id"] if isinstance(reader, dict) else reader
                       for reader in one["readers"]}
        for one in world.platform.get("/documents")["items"]
    }  # fmt: skip

    seen: Counter[str] = Counter()
    for number in range(QUESTIONS):
        here = copy.copy(world)
        place = dice.randrange(len(GROUPS))
        here.group, who = groups[place], dice.choice(GROUPS[place])
        document, secret, kind = dice.choice(documents)
        can_open = readers[document["token"]]
        shares = {one["member_id"] for one in document["members"]}
        if kind == "group" and here.group not in shares:
            kind = "another group"
        case = Case(who, document["url"], secret, kind, can_open, GROUPS[place])
        ask(here, case, f"({number}, DOCUMENT_SEED={seed})", seen)
    print(dict(seen))
    # Who belongs to a department nobody tells.
    could = seen["could be told"] - seen["could be told: department"]
    assert seen["told"] >= 0.95 * could, f"DOCUMENT_SEED={seed}"


@dataclass(frozen=True)
class Case:
    """Who asks for which code, and who of the group can open the document that has it."""

    who: str
    url: str
    secret: str
    kind: str
    can_open: set[str]
    members: tuple[str, ...]


def ask(world: World, case: Case, name: str, seen: Counter[str]) -> None:
    known = {one["message_id"] for one in shown_to(world, case.who)}
    calls = {"tool_calls": [{"name": "read_document", "arguments": {"url": case.url}}]}
    world.model.control("mode", {"mode": "rules"})
    rules = [
        {"when": {"in": "last", "regex": case.secret}, "reply": {"text": f"It is {case.secret}."}},
        {"reply": calls, "after_tool": False},
        {"reply": {"text": "I don't know."}},
    ]
    world.model.control("script", {"rules": rules})
    question, said = world.ask(case.who, f"{name} which code does {case.url} give?")
    looked_up(world, question)
    offered = [one for one in shown_to(world, case.who) if one["message_id"] not in known]
    by_all = all(world.people[one] in case.can_open for one in case.members)
    told = case.secret in said
    for_everybody = [one for one in world.platform.messages(world.group) if not one["visible_to"]]
    assert by_all or f"is {case.secret}" not in json.dumps(for_everybody), name
    assert bool(offered) is (world.people[case.who] in case.can_open and not told), name
    counted = {"asked": 1, "told": told, "offered": bool(offered), "could be told": by_all}
    seen.update({**counted, f"could be told: {case.kind}": by_all})
