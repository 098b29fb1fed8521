"""A group of several companies: guests have another tenant than the one that has the bot."""

from __future__ import annotations

import json

import pytest
import requests

from tests.acceptance.conftest import World, prompt_of
from tests.support.deliveries import Delivery, message_event
from tests.support.processes import APP

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
    world.platform.post("/switches", all_group_messages=False)  # the events of guests are ours
    try:
        third = "陈晨"
        root, _ = world.ask("Alice", "our word is apricot")
        world.settled(root)
        guest = asks_as_guest(world, "Bob", "my word is plum", "guests", root_id=root)
        world.answer(guest)
        world.settled(guest)
        other = asks_as_guest(world, third, "and mine is fig", "others", root_id=root)
        world.answer(other)
        world.settled(other)
        again = asks_as_guest(world, "Bob", "what is my word?", "guests", root_id=root)
        world.answer(again)
        world.settled(again)
    finally:
        world.platform.post("/switches", all_group_messages=True)

    told = prompt_of(world.model.requests()[-1])
    assert any("my word is plum" in text for role, text in told if role == "user")
    rows = world.rows(
        "select user_id, tenant_key from agent_turns where chat_id = %s order by created_at",
        world.group,
    )
    people = [world.people[name] for name in ("Alice", "Bob", third, "Bob")]
    assert [(row["user_id"], row["tenant_key"]) for row in rows] == [(one, HOST) for one in people]
