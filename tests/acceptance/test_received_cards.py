"""Cards of other apps, quoted, forwarded or sent: the model reads them as people see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import World, prompt_of
from tests.support import profiles

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.IN_CHAT


@pytest.fixture
def pager(world: World) -> str:
    """Another bot of the group."""
    bot = str(world.platform.post("/people", name="Pager", kind="bot")["open_id"])
    world.platform.post("/join", chat_id=world.group, open_id=bot, silently=True)
    return bot


def posted(world: World, bot: str, card: dict[str, Any]) -> str:
    content = json.dumps(card, ensure_ascii=False)
    return str(
        world.platform.say(bot, world.group, "", message_type="interactive", content=content)
    )


def asked(world: World) -> str:
    """The last message of the last request, as text, without what is known for it."""
    _, content = prompt_of(world.model.requests()[-1])[-1]
    return str(content if isinstance(content, str) else content[0]["text"])


def plain(content: str) -> dict[str, Any]:
    return {"tag": "plain_text", "content": content}


def alert(owner: str) -> dict[str, Any]:
    field = {"is_short": True, "text": {"tag": "lark_md", "content": "**Since**\n09:12"}}
    text = {"tag": "lark_md", "content": f"/data is at 97 %, <at id={owner}></at> please look"}
    button = {"tag": "button", "text": plain("Acknowledge"), "value": {"text": "HIDDEN"}}
    return {
        "header": {"title": plain("[P1] Disk full"), "template": "red"},
        "elements": [
            {"tag": "div", "text": text, "fields": [field]},
            {"tag": "action", "actions": [button]},
            {"tag": "note", "elements": [plain("by"), plain("Pager")]},
        ],
    }


def approval(owner: str) -> dict[str, Any]:
    return {
        "schema": "2.0",
        "header": {"title": plain("Leave request")},
        "body": {"elements": [{"tag": "markdown", "content": f"3 March, <at id={owner}></at>"}]},
    }


ALERT = """[P1] Disk full
/data is at 97 %, @Bob please look
**Since**
09:12
[Acknowledge]
by Pager"""


def test_a_quoted_alert_of_card_version_1_is_read_as_people_see_it(
    world: World, pager: str
) -> None:
    card = posted(world, pager, alert(world.people["Bob"]))
    world.ask("Alice", "what is wrong?", reply_to=card, quote=True)

    assert "\n> " + ALERT.replace("\n", "\n> ") + "\n\nAlice: what is wrong?" in asked(world)
    assert "HIDDEN" not in json.dumps(world.model.requests()[-1]["body"])


def test_a_quoted_card_of_version_2_is_read_from_its_original(world: World, pager: str) -> None:
    card = posted(world, pager, approval(world.people["Bob"]))
    world.ask("Alice", "when is it?", reply_to=card, quote=True)

    assert "\n> Leave request\n> 3 March, @Bob\n\nAlice: when is it?" in asked(world)
    assert "请升级" not in json.dumps(world.model.requests()[-1]["body"], ensure_ascii=False)


def test_a_thread_under_an_alert_is_about_that_alert(world: World, pager: str) -> None:
    card = posted(world, pager, alert(world.people["Bob"]))
    world.ask("Alice", "what is wrong?", reply_to=card)

    prompt = "\n".join(text for _, text in prompt_of(world.model.requests()[-1]))
    assert all(prompt.count(line) == 1 for line in ALERT.splitlines())


def test_an_alert_of_before_the_conversation_is_read_from_the_chats_history(
    world: World, pager: str
) -> None:
    fresh = world.in_a_new_group()
    fresh.platform.post("/join", chat_id=fresh.group, open_id=pager, silently=True)
    posted(fresh, pager, alert(fresh.people["Bob"]))
    posted(fresh, pager, approval(fresh.people["Bob"]))
    question, _ = fresh.ask("Alice", "hello")  # with the first answer the conversation begins
    fresh.settled(question)
    fresh.ask("Alice", "what happened?")

    prompt = json.dumps(fresh.model.requests()[-1]["body"], ensure_ascii=False)
    assert "/data is at 97 %, @Bob please look" in prompt
    assert "3 March, @Bob" in prompt
    assert "请升级" not in prompt


def test_forwarded_cards_are_read_with_the_messages_around_them(world: World, pager: str) -> None:
    bob = world.people["Bob"]
    ids = [posted(world, pager, alert(bob)), posted(world, pager, approval(bob))]
    ids.append(world.say("Bob", "seen"))
    forward = world.platform.post(
        "/forward", **{"as": bob, "chat_id": world.group, "message_ids": ids}
    )["message_id"]
    world.ask("Alice", "sum that up", reply_to=forward, quote=True)

    told = asked(world)
    assert "[P1] Disk full" in told
    assert "/data is at 97 %, @Bob please look" in told
    assert "3 March, @Bob" in told
    assert "Bob: seen" in told
    assert "<at" not in told


def test_a_card_forwarded_to_the_bot_alone_is_the_question(world: World, pager: str) -> None:
    alice = world.people["Alice"]
    card = posted(world, pager, approval(alice))
    (chat,) = (
        one["chat_id"]
        for one in world.platform.state()["chats"]
        if one["mode"] == "p2p" and alice in one["members"]
    )
    forward = world.platform.post(
        "/forward", **{"as": alice, "chat_id": chat, "message_ids": [card]}
    )["message_id"]
    world.settled(forward)

    assert asked(world) == "Leave request\n3 March, @Alice"


def test_text_that_touches_a_mention_is_read(world: World) -> None:
    world.platform.post("/switches", tight_mentions=True)
    try:
        world.ask("Alice", "tell @Bob 9:00 standup")
    finally:
        world.platform.post("/switches", tight_mentions=False)
    assert asked(world) == "Alice: tell @Bob 9:00 standup"
