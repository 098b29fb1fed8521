"""A group's past: previewed, imported with two clicks, asked about with its source, removed."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import card_of, click
from tests.acceptance.test_handles import elements
from tests.support import depth, profiles
from tests.support.importing import LIST, TABLES

MESSAGES = 600
REPORT = "**I've read this group's history**"
IMPORT_JOBS = "select 1 from feishu_bot.jobs where args ? 'import_id'"
KILLS = depth.count("IMPORT_KILLS", short=2, deep=6)


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


@pytest.fixture
def past(world: World) -> World:
    """The same bot in a group that Alice owns, with two years of talk; it joined as the last."""
    made = world.platform.post("/pasts", messages=MESSAGES, name="Harbour")
    group = copy.copy(world)
    group.group = made["chat_id"]
    group.people = {one["name"]: one["open_id"] for one in world.platform.state()["people"]}
    eventually(
        lambda: group.rows("select 1 from chats where chat_id = %s", group.group),
        what="the bot hears of the group",
    )
    return group


def labels(message: dict[str, Any]) -> list[str]:
    """What can be pressed on a card, in order, a form's button included."""
    card = message["card"] or json.loads(message["content"])
    found = []
    for one in card["body"]["elements"]:
        inner = one["elements"] if one["tag"] == "form" else [one]
        found += [e["text"]["content"] for e in inner if e["tag"] == "button"]
    return found


def pressed(world: World, who: str, message: dict[str, Any], label: str, **form: str) -> Any:
    """Presses the button of that label; returns the card that answers."""
    known = {one["id"] for one in turns(world)}
    more = {"form": form} if form else {}
    answer = click(world, who, message, index=labels(message).index(label), **more)
    assert answer["toast"]["type"] == "success", answer
    turn = eventually(
        lambda: [one for one in turns(world) if one["id"] not in known and one["state"] == "sent"],
        what=f"the press on {label} is answered",
        within_s=60,
    )[0]["id"]
    return world.answers(turn)[-1]


def sources(message: dict[str, Any]) -> list[str]:
    """The imported messages that the folded line names."""
    (panel,) = [one for one in elements(message) if one["tag"] == "collapsible_panel"]
    (found,) = [one["content"] for one in panel["elements"] if one["tag"] == "markdown"]
    return str(found).splitlines()


def turns(world: World) -> list[dict[str, Any]]:
    return world.rows(
        "select id, state from agent_turns where origin = 'button' and chat_id = %s", world.group
    )


def imported(world: World) -> dict[str, Any]:
    rows = world.rows("select * from chat_imports where chat_id = %s", world.group)
    return rows[0] if rows else {}


def messages_of(world: World) -> int:
    return int(world.rows("select count(*) as n from imported_messages")[0]["n"])


def told(world: World, words: str) -> int:
    """How many of the bot's cards in the group hold the words."""
    cards = [one for one in world.platform.messages(world.group) if is_from_bot(one)]
    return sum(words in markdown(one) for one in cards if one["card"])


def test_an_owner_imports_the_past_asks_about_it_and_removes_it(past: World) -> None:
    past.platform.post("/switches", message_positions=True)
    refused = past.ask_alone("Bob", "/import")
    assert "Only the group owner, admins or whoever added me" in markdown(refused)
    assert imported(past) == {}

    question, offered = past.ask("Alice", "/import")
    assert "I can read what was said here before I joined" in offered
    assert "only about what was said since they joined" in offered
    card = card_of(past, question)
    assert labels(card) == ["Preview"]
    assert "Only the group owner" in markdown(pressed(past, "Bob", card, "Preview", span="all"))

    preview = pressed(past, "Alice", card, "Preview", span="all")
    assert "nothing has been imported yet" in markdown(preview)
    assert "about" in markdown(preview)
    assert labels(preview) == ["Import", "Not now"]
    assert imported(past) == {}
    assert messages_of(past) == 0

    begun = pressed(past, "Alice", preview, "Import")
    assert click(past, "Alice", preview, index=0)["toast"]["type"] != "success", "only once"
    eventually(lambda: imported(past)["state"] == "done", what="the import", within_s=120)
    assert "history" in markdown(begun)
    eventually(lambda: told(past, REPORT), what="the report")
    assert messages_of(past) > MESSAGES / 2
    question, done = past.ask("Alice", "/import")
    assert "asked for by Alice" in done
    assert labels(card_of(past, question)) == ["Remove"]

    past.settled(past.ask("Alice", "/settings history shown")[0])
    (said,) = past.rows(
        "select content, author_name, position from imported_messages"
        " where author_id like 'ou_%%' and root_id is null and content ~ '^[A-Za-z ,:]{40,}$'"
        " order by length(content) desc, sent_at limit 1"
    )
    past.model.forget()
    answer = {"text": f"It was decided: {said['content']}"}
    past.model.control("script", {"rules": [{"reply": answer}]})
    some = " ".join(said["content"].split()[-4:])
    question, _ = past.ask("Bob", f"who said something about “{some}”, and what?")
    asked = json.dumps(past.model.requests()[-1]["body"], ensure_ascii=False)
    assert "· imported] " + said["author_name"] in asked
    lines = sources(card_of(past, question))
    assert any(f"openChatId={past.group}" in one and said["author_name"] in one for one in lines)
    link = f"openChatId={past.group}&position={said['position']})"
    assert said["position"] > 0
    assert any(link in one for one in lines)

    question, _ = past.ask("Alice", "/import")
    asked_to = pressed(past, "Alice", card_of(past, question), "Remove")
    assert "What I heard myself stays" in markdown(asked_to)
    assert labels(asked_to) == ["Remove for good", "Keep"]
    receipt = pressed(past, "Alice", asked_to, "Remove for good")
    assert "history" in markdown(receipt)
    eventually(lambda: imported(past) == {}, what="the import is gone", within_s=60)
    assert messages_of(past) == 0
    eventually(lambda: told(past, "**The imported history has been removed:**"), what="the receipt")


def begin_import(world: World) -> None:
    question, _ = world.ask("Alice", "/import")
    preview = pressed(world, "Alice", card_of(world, question), "Preview", span="all")
    pressed(world, "Alice", preview, "Import")


def remove_import(world: World) -> None:
    question, _ = world.ask("Alice", "/import")
    asked_to = pressed(world, "Alice", card_of(world, question), "Remove")
    pressed(world, "Alice", asked_to, "Remove for good")
    eventually(lambda: imported(world) == {}, what="the import is gone", within_s=60)


def left_by_import(world: World) -> dict[str, Any]:
    """All that it left. The bot's own cards, which are not kept, are more each time."""
    eventually(lambda: imported(world).get("state") == "done", what="the import", within_s=180)
    eventually(lambda: not world.rows(IMPORT_JOBS), what="its last job is done", within_s=60)
    tables = {name: world.rows(query) for name, query in TABLES.items()}
    for row in tables["imports"]:
        del row["pages"], row["report"]["own"]
    return tables


def test_killed_again_and_again_it_leaves_what_one_undisturbed_leaves(past: World) -> None:
    """`IMPORT_KILLS=n`: so many SIGKILLs, at moments of `IMPORT_KILLS_SEED`."""
    seed = int(os.environ.get("IMPORT_KILLS_SEED") or depth.dice().getrandbits(32))
    moments, killed = random.Random(seed), 0
    begin_import(past)
    undisturbed = left_by_import(past)
    assert len(undisturbed["messages"]) > MESSAGES / 2
    remove_import(past)
    reports = told(past, REPORT)

    past.platform.post("/faults", path_prefix=LIST, method="GET", delay_s=0.15, times=0)
    begin_import(past)
    while killed < KILLS and imported(past)["state"] == "running":
        time.sleep(moments.uniform(0, 0.8))  # a moment that nothing in the program marks
        past.bot.workers[-1].kill()
        past.bot.start_worker()
        killed += 1
    past.platform.forget_faults()
    assert left_by_import(past) == undisturbed, f"IMPORT_KILLS_SEED={seed}"
    assert killed == KILLS
    assert told(past, REPORT) == reports + 1, f"IMPORT_KILLS_SEED={seed}"


def test_it_is_paused_goes_on_and_is_taken_further_back(past: World) -> None:
    past.platform.post("/faults", path_prefix=LIST, method="GET", delay_s=0.3, times=0)
    question, _ = past.ask("Alice", "/import")
    preview = pressed(past, "Alice", card_of(past, question), "Preview", span="365")
    running = pressed(past, "Alice", preview, "Import")
    assert labels(running) == ["Refresh", "Pause", "Cancel and remove"]
    paused = pressed(past, "Alice", running, "Pause")
    assert "is paused" in markdown(paused)
    assert labels(paused) == ["Resume", "Cancel and remove"]
    eventually(lambda: not past.rows(IMPORT_JOBS), what="its last page is read", within_s=60)
    assert imported(past)["state"] == "paused"
    past.platform.forget_faults()
    pressed(past, "Alice", paused, "Resume")
    eventually(lambda: imported(past)["state"] == "done", what="a year is read", within_s=120)
    a_year = messages_of(past)

    question, _ = past.ask("Alice", "/import")
    assert labels(card_of(past, question)) == ["Import more", "Remove"]
    offered = pressed(past, "Alice", card_of(past, question), "Import more")
    preview = pressed(past, "Alice", offered, "Preview", span="all")
    pressed(past, "Alice", preview, "Import")
    left_by_import(past)
    assert imported(past)["since"] is None
    assert messages_of(past) > a_year > 0
    remove_import(past)
