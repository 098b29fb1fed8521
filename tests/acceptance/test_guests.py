"""A group of several companies: guests have another tenant than the one that has the bot."""

from __future__ import annotations

import copy
import json

import pytest
import requests

from lab.doubles.processes import APP, eventually
from tests.acceptance.conftest import World, prompt_of
from tests.support.deliveries import Delivery, message_event

pytestmark = pytest.mark.slow

HOST = "sandbox00tenant1"


def asks_as_guest(world: World, who: str, text: str, tenant: str, **more: str) -> str:
    """A mention by somebody of `tenant`, as Feishu pushes it; returns the message_id."""
    message_id = world.say(who, text, **({"reply_to": more["root_id"]} if more else {}))
    bot = {"key": "@_user_1", "id": {"open_id": world.bot_id}, "name": world.bot_name}
    event = message_event(
        message_id=message_id,
        token=APP["FEISHU_VERIFICATION_TOKEN"],
        app_id=APP["FEISHU_APP_ID"],
        chat_id=world.group,
        chat_type="group",
        content=json.dumps({"text": f"@_user_1 {text}"}),
        mentions=[bot],
        **more,
    )
    event["header"]["tenant_key"] = HOST
    sender = {"sender_id": {"open_id": world.people[who]}, "tenant_key": tenant}
    event["event"]["sender"] = {**sender, "sender_type": "user"}
    delivery = Delivery(event, key=APP["FEISHU_ENCRYPT_KEY"])
    url = f"{world.bot.url}/webhook/event"
    assert (
        requests.post(url, delivery.body, headers=delivery.headers, timeout=10).status_code == 200
    )
    return message_id


def test_hosts_and_guests_talk_to_the_bot_in_one_thread_each_with_their_own_memory(
    world: World,
) -> None:
    with world.without_scopes("im:message.group_msg"):  # the events of guests are ours
        third = "陈晨"
        root, _ = world.ask("Alice", "our word is apricot")
        world.settled(root)
        thread = {"root_id": root, "thread_id": "omt_of_the_root"}
        guest = asks_as_guest(world, "Bob", "my word is plum", "guests", **thread)
        world.answer(guest)
        world.settled(guest)
        other = asks_as_guest(world, third, "and mine is fig", "others", **thread)
        world.answer(other)
        world.settled(other)
        again = asks_as_guest(world, "Bob", "what is my word?", "guests", **thread)
        world.answer(again)
        world.settled(again)

    told = prompt_of(world.model.requests()[-1])
    assert any("my word is plum" in text for role, text in told if role == "user")
    rows = world.rows(
        "select user_id, tenant_key from agent_turns where chat_id = %s order by created_at",
        world.group,
    )
    people = [world.people[name] for name in ("Alice", "Bob", third, "Bob")]
    assert [(row["user_id"], row["tenant_key"]) for row in rows] == [(one, HOST) for one in people]


@pytest.fixture
def guest(world: World) -> World:
    """Gus of another company is in the group, and the bot knows it."""
    made = world.platform.post("/people", name="Gus", tenant_key="guests")
    world.people = {**world.people, "Gus": made["open_id"]}
    world.platform.post("/join", chat_id=world.group, open_id=made["open_id"])
    known = "select 1 from chat_members where chat_id = %s and open_id = %s and tenant_key = %s"
    eventually(
        lambda: world.rows(known, world.group, made["open_id"], "guests"), what="Gus is a member"
    )
    return world


def prompt_after(world: World, who: str, text: str, **where: str) -> str:
    """What the model is given for a question."""
    world.model.forget()
    asked, _ = world.ask(who, text, **where)
    world.settled(asked)
    return json.dumps(world.model.requests()[-1]["body"], ensure_ascii=False)


def test_a_guest_is_told_alone_what_was_said_in_a_group_of_theirs(guest: World) -> None:
    elsewhere = copy.copy(guest)
    members = [guest.people["Alice"], guest.people["Bob"]]
    elsewhere.group = guest.platform.post("/chats", name="Without Gus", members=members)["chat_id"]
    for place, text in (
        (guest, "the door code of the archive is apricot"),
        (guest, "the word of the vault is plumcake"),
        (elsewhere, "the door code of the cellar is quince"),
    ):
        told, _ = place.ask("Alice", text)
        place.settled(told)
    chats, gus = guest.platform.state()["chats"], guest.people["Gus"]
    alone = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and gus in c["members"])

    in_group = prompt_after(guest, "Gus", "what is the door code of the archive?")
    in_p2p = prompt_after(guest, "Gus", "what are the door codes of archive, cellar?", chat=alone)
    assert "apricot" in in_group
    assert "apricot" in in_p2p
    assert "quince" not in in_group + in_p2p

    guest.platform.post("/leave", chat_id=guest.group, open_id=gus)
    member = "select 1 from chat_members where chat_id = %s and open_id = %s and left_at is null"
    eventually(lambda: not guest.rows(member, guest.group, gus), what="Gus is out")
    assert "plumcake" not in prompt_after(guest, "Gus", "what is the vault's word?", chat=alone)
