"""People connect their account: a link that they alone see, what they granted, and its end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from lab.doubles.processes import eventually
from memory.backends.embedded_host import installed_program
from memory.scope import FeishuPerson
from memory.sealing import Sealer
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import buttons, click
from tests.acceptance.test_own_memory import after, press
from tests.acceptance.test_seed_scenarios import restart
from tests.acceptance.test_welcome import newcomer
from tests.support import profiles
from tests.support.forking import run_script
from tests.support.patience import limit_s

KEY = profiles.CONNECTED["USER_TOKEN_KEY"]
LINK = re.compile(r"\((http[^)]+user_code=[^)]+)\)")
ROWS = "select * from user_tokens where open_id = %s"
SEALS = "select * from bot_private.user_token_seals where open_id = %s"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


@pytest.fixture
def nora(world: World) -> tuple[World, str]:
    """Somebody new in the world's group, and their chat with the bot."""
    name = f"Nora {uuid.uuid4().hex[:6]}"
    _, chat = newcomer(world, name)
    world.people["Nora"] = world.people[name]
    return world, chat


def linked(world: World, chat: str, who: str, text: str = "/connect") -> tuple[dict[str, Any], str]:
    """The card with the link, and the link."""
    card = after(world, chat, lambda: world.say(who, text, chat=chat))
    [link] = LINK.findall(markdown(card))
    return card, link


def decide(world: World, who: str, link: str, *, approve: bool = True, **more: Any) -> None:
    world.platform.post("/grants", **{"as": world.people[who]}, link=link, approve=approve, **more)


def shows(world: World, chat: str, card: dict[str, Any], words: str) -> None:
    """Waits until the card says so."""

    def now() -> bool:
        return any(
            words in markdown(one)
            for one in world.platform.messages(chat)
            if one["message_id"] == card["message_id"]
        )

    eventually(now, what=f"the card says {words!r}", within_s=60)


def connected(world: World, chat: str, who: str = "Nora") -> None:
    card, link = linked(world, chat, who)
    decide(world, who, link)
    shows(world, chat, card, "Your account is connected")


def row(world: World, who: str = "Nora") -> dict[str, Any]:
    return next(iter(world.rows(ROWS, world.people[who])), {})


def test_a_person_connects_sees_what_they_granted_and_disconnects(nora: tuple[World, str]) -> None:
    world, chat = nora
    card, link = linked(world, chat, "Nora")
    assert "read documents, wiki pages, sheets and Bases" in markdown(card)
    assert "expires in 10 minutes" in markdown(card)
    assert row(world)["granted_at"] is None
    decide(world, "Nora", link)
    shows(world, chat, card, "Your account is connected")
    assert row(world)["granted_at"] is not None
    eventually(lambda: row(world)["ask"] == "", what="nothing is asked for any more")
    assert not [one for one in world.platform.messages(chat) if "user_code" in json.dumps(one)]

    listed = after(world, chat, lambda: world.say("Nora", "/connect", chat=chat))
    assert "Your account has been connected" in markdown(listed)
    assert "search them" in markdown(listed)
    gone = press(world, "Nora", chat, listed, "Disconnect")
    assert "I deleted its tokens" in markdown(gone)
    assert row(world) == {}
    assert world.rows(SEALS, world.people["Nora"]) == []


def test_in_chinese_too(nora: tuple[World, str]) -> None:
    world, chat = nora
    card, link = linked(world, chat, "Nora", "/连接")
    assert "10 分钟内有效" in markdown(card)
    decide(world, "Nora", link)
    shows(world, chat, card, "你的账号已连接")


def test_who_declines_is_not_connected(nora: tuple[World, str]) -> None:
    world, chat = nora
    card, link = linked(world, chat, "Nora")
    decide(world, "Nora", link, approve=False)
    shows(world, chat, card, "You declined")
    eventually(lambda: row(world) == {}, what="nothing is asked for any more")


def test_what_somebody_else_approves_is_thrown_away(nora: tuple[World, str]) -> None:
    world, chat = nora
    newcomer(world, "Otto")
    card, link = linked(world, chat, "Nora")
    decide(world, "Otto", link)
    shows(world, chat, card, "Somebody else approved this link")
    eventually(lambda: row(world) == {}, what="nothing is asked for any more")
    assert row(world, "Otto") == {}
    assert world.rows(SEALS, world.people["Nora"]) == []


def test_in_a_group_the_link_is_for_the_asker_alone(world: World) -> None:
    newcomer(world, "Olga")
    world = world.in_a_new_group()
    question = world.say("Olga", f"@{world.bot_name} /connect")

    def beside() -> list[dict[str, Any]]:
        found = world.platform.messages(world.group)
        return [m for m in found if is_from_bot(m) and m["visible_to"] and not m["deleted"]]

    [card] = eventually(beside, what="a card for Olga")
    assert card["visible_to"] == world.people["Olga"]
    [link] = LINK.findall(markdown(card))
    assert world.answers(question) == []
    decide(world, "Olga", link)

    def told() -> bool:
        return any("Your account is connected" in markdown(one) for one in beside())

    eventually(told, what="Olga is told", within_s=60)
    eventually(
        lambda: not any("user_code" in markdown(one) for one in beside()), what="the link goes"
    )
    assert row(world, "Olga")["granted_at"] is not None
    eventually(lambda: row(world, "Olga")["ask"] == "", what="all is told")

    known = {one["message_id"] for one in beside()}
    again = world.say("Olga", f"@{world.bot_name} /connect")

    def listed() -> list[dict[str, Any]]:
        return [one for one in beside() if one["message_id"] not in known and buttons(one)]

    [shown] = eventually(listed, what="what Alice granted, with its button")
    assert "Your account has been connected" in markdown(shown)
    query = "select 1 from agent_turns where id = %s and state not in ('open', 'pending')"
    over = f"{query} and not forgets"
    eventually(lambda: world.rows(over, again), what="the question is over")
    assert listed() == [shown], "it stays in the chat"
    click(world, "Olga", shown, index=0)
    eventually(lambda: row(world, "Olga") == {}, what="the row goes")
    assert world.answers(question) == []


def test_feishu_s_revocation_and_forgetting_end_it_within_a_second(
    nora: tuple[World, str],
) -> None:
    world, chat = nora
    connected(world, chat)
    begun = time.monotonic()
    world.platform.post("/grants/revoke", **{"as": world.people["Nora"]})
    eventually(lambda: row(world) == {}, what="the row goes")
    spent_s = time.monotonic() - begun
    assert world.rows(SEALS, world.people["Nora"]) == []
    print(f"\nafter the revocation the tokens were there for {spent_s:.2f} s")
    assert spent_s < limit_s(1)

    connected(world, chat)
    asked = after(world, chat, lambda: world.say("Nora", "/forget all", chat=chat))
    press(world, "Nora", chat, asked, "Confirm")
    eventually(lambda: row(world) == {}, what="the row goes")
    assert world.rows(SEALS, world.people["Nora"]) == []


def test_a_worker_that_is_killed_meanwhile_loses_no_answer(nora: tuple[World, str]) -> None:
    world, chat = nora
    card, link = linked(world, chat, "Nora")
    world.bot.workers[-1].kill()
    decide(world, "Nora", link)
    restart(world)
    shows(world, chat, card, "Your account is connected")


def test_who_is_lost_while_refreshing_is_told(nora: tuple[World, str]) -> None:
    world, chat = nora
    connected(world, chat)
    world.rows(
        "update user_tokens set access_until = now(), refreshed_by = 'dead',"
        " refresh_began_at = now() - interval '1 hour' where open_id = %s returning 1",
        world.people["Nora"],
    )

    def told() -> bool:
        found = world.platform.messages(chat)
        return any("I lost the connection" in markdown(m) for m in found if is_from_bot(m))

    eventually(told, what="Nora is told", within_s=90)
    eventually(lambda: row(world) == {}, what="the row goes")


def test_no_token_stands_in_logs_jobs_rows_prompts_or_a_backup(
    nora: tuple[World, str], tmp_path: Path
) -> None:
    world, chat = nora
    card, link = linked(world, chat, "Nora")
    person = FeishuPerson(row(world)["tenant_key"], world.people["Nora"])
    [device] = world.rows(SEALS, person.open_id)
    secrets = json.loads(
        Sealer.of(KEY).open(person, "device", row(world)["ask_sealed_with"], device["sealed"])
    )
    decide(world, "Nora", link)
    shows(world, chat, card, "Your account is connected")
    world.ask("Nora", "hello", chat=chat)
    for one in world.rows(SEALS, person.open_id):
        name = row(world)["sealed_with"]
        secrets.append(Sealer.of(KEY).open(person, one["kind"], name, one["sealed"]))
    sealed = [device["sealed"], *(one["sealed"] for one in world.rows(SEALS, person.open_id))]
    assert len(secrets) == 4

    dump = tmp_path / "all.dump"
    environment = {**os.environ, **world.bot.environment}
    assert run_script("backup", str(dump), env=environment).returncode == 0
    tables = world.rows(
        "select schemaname || '.' || tablename as name from pg_tables"
        " where schemaname in ('public', 'feishu_bot', 'bot_private')"
    )
    kept = {
        one["name"]: json.dumps(world.rows(f"select t::text from {one['name']} t"))
        for one in tables
    }
    assert "user_tokens" in "".join(kept)
    places = {
        "logs": "".join(process.output() for process in world.bot.processes),
        "prompts": json.dumps(world.model.requests()),
        "rows": "".join(kept.values()),
        "cards": json.dumps(world.platform.messages(chat)),
    }
    restored = subprocess.run(
        [installed_program() / "bin" / "pg_restore", "--file=-", str(dump)],
        check=True,
        capture_output=True,
    )
    places["backup"] = restored.stdout.decode()
    assert person.open_id in places["backup"]
    for secret in secrets:
        assert [place for place, text in places.items() if secret in text] == []
    for one in sealed:
        assert one not in places["backup"]
        held = [name for name, text in kept.items() if one in text]
        assert set(held) <= {"bot_private.user_token_seals"}
