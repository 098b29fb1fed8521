"""Documents in a group: told of where everybody there can open them, else to who asks alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.doubles.processes import eventually
from memory.models import Origin
from tests.acceptance.conftest import World, markdown, prompt_of
from tests.acceptance.test_connect import LINK, connected, decide
from tests.acceptance.test_private_answers import (
    looked_up,
    press,
    shown_to,
)
from tests.support import profiles

SECRET = "Quillfeather seventy-seven"
SHARED = "Quincunx eleven"
NOTED = "Pennywhistle forty"
ONCE = "Tallowmere sixty"
OTHER, HIDDEN = "Marlinspike ninety", "Oxbow lantern"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


@pytest.fixture
def alice(world: World) -> World:
    """The world with Alice connected."""
    chats = world.platform.state()["chats"]
    person = world.people["Alice"]
    chat = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and person in c["members"])
    if not world.rows("select from user_tokens where open_id = %s", person):
        connected(world, chat, "Alice")
    world.model.forget()
    return world


def document(world: World, secret: str = SECRET, **sharing: Any) -> dict[str, Any]:
    blocks = [
        {"kind": "heading", "level": 1, "text": "Launch"},
        {"kind": "text", "text": f"The launch code is {secret}."},
    ]
    body = {"as": world.people["Alice"], "title": "Launch plan", "blocks": blocks, **sharing}
    return dict(world.platform.post("/documents", **body))


def asked(world: World, url: str, who: str = "Alice", secret: str = SECRET) -> tuple[str, str]:
    """Somebody asks about it in the group; the model reads it and says what it holds, if it can."""
    read = {"tool_calls": [{"name": "read_document", "arguments": {"url": url}}]}
    world.model.control("mode", {"mode": "rules"})
    rules = [
        {"when": {"in": "last", "regex": secret}, "reply": {"text": f"It is {secret}."}},
        {"reply": read, "after_tool": False},
        {"reply": {"text": "I don't know."}},
    ]
    world.model.control("script", {"rules": rules})
    return world.ask(who, f"what is the launch code in {url} ?")


def tool_results(world: World) -> list[str]:
    return [text for role, text in prompt_of(world.model.requests()[-1]) if role == "tool"]


def in_group(world: World) -> str:
    """What everybody in the group reads now."""
    found = world.platform.messages(world.group)
    shown = [one for one in found if not one["visible_to"] and not one["deleted"]]
    return json.dumps([one["card"] or one["content"] for one in shown], ensure_ascii=False)


def look_again(world: World, token: str) -> None:
    """An hour has passed since anybody looked who can open it."""
    world.rows(
        "update bot_private.told_documents set looked_at = looked_at - interval '1 hour'"
        " where token = %s returning 1",
        token,
    )


def test_what_everybody_in_the_group_can_open_is_told_there(alice: World) -> None:
    plan = document(alice, link="tenant_readable")
    question, said = asked(alice, plan["url"])
    assert SECRET in said
    (row,) = alice.settled(question)
    assert "read_document" in json.dumps(row["tool_calls"])
    assert SECRET not in json.dumps(row["tool_calls"]), "what it gave is for that answer alone"
    looked_up(alice, question)
    assert not [
        one for one in shown_to(alice, "Alice") if "A document that not everyone" in markdown(one)
    ]


def test_a_group_that_it_is_shared_with_is_told(alice: World) -> None:
    here = {"member_type": "openchat", "member_id": alice.group, "perm": "view"}
    assert SECRET in asked(alice, document(alice, members=[here])["url"])[1]


def alone(world: World, question: str, known: set[str]) -> dict[str, Any]:
    """The private answer that Alice is offered after a question, and shown when she presses."""
    looked_up(world, question)
    (offer,) = new_to_alice(world, known)
    assert "A document that not everyone" in markdown(offer)
    assert "Launch plan" not in markdown(offer)
    known.add(offer["message_id"])
    press(world, "Alice", offer)
    eventually(lambda: new_to_alice(world, known), what="the private answer")
    (shown,) = new_to_alice(world, known)
    return shown


def new_to_alice(world: World, known: set[str]) -> list[dict[str, Any]]:
    return [one for one in shown_to(world, "Alice") if one["message_id"] not in known]


@pytest.fixture
def known(alice: World) -> set[str]:
    """What only Alice sees already."""
    return {one["message_id"] for one in shown_to(alice, "Alice")}


def test_what_somebody_there_cannot_open_is_as_if_it_did_not_exist(
    alice: World, known: set[str]
) -> None:
    closed = document(alice)
    question, said = asked(alice, closed["url"])
    refused = tool_results(alice)[-1]
    assert SECRET not in json.dumps(alice.model.requests(), ensure_ascii=False)
    assert SECRET in markdown(alone(alice, question, known))
    missing = closed["url"].replace(closed["token"], "x" * 27)
    _, about_nothing = asked(alice, missing)
    assert (said, refused) == (about_nothing, tool_results(alice)[-1])


def test_it_is_shared_when_everybody_can_open_it_and_withdrawn_when_it_is_gone(
    alice: World, known: set[str]
) -> None:
    closed = document(alice, SHARED)
    shown = alone(alice, asked(alice, closed["url"], secret=SHARED)[0], known)
    press(alice, "Alice", shown)
    eventually(lambda: "I didn't share that" in in_group(alice), what="it is not shared")
    assert SHARED not in in_group(alice)

    alice.platform.post("/documents/change", token=closed["token"], link="tenant_readable")
    eventually(lambda: may_press(alice, shown), what="the button can be pressed again")
    press(alice, "Alice", shown)
    eventually(lambda: SHARED in in_group(alice), what="it is shared")
    assert not may_press(alice, shown), "once"
    alice.platform.post("/documents/change", token=closed["token"], deleted=True)
    look_again(alice, closed["token"])
    eventually(lambda: SHARED not in in_group(alice), what="it is withdrawn", within_s=90)


def may_press(world: World, card: dict[str, Any]) -> bool:
    return not world.rows(
        "select from agent_presses p join agent_buttons b on b.id = p.button_id"
        " where b.message_id = %s",
        card["message_id"],
    )


def test_a_note_made_of_a_document_that_is_closed_is_not_shared(alice: World) -> None:
    plan = document(alice, NOTED, link="tenant_readable")
    kept = {"name": "create_note", "arguments": {"title": "Launch", "body": NOTED}}
    read = {"tool_calls": [{"name": "read_document", "arguments": {"url": plan["url"]}}]}
    when_read = {"when": {"in": "last", "regex": f"code is {NOTED}"}}
    alice.model.control("mode", {"mode": "rules"})
    rules = [
        {**when_read, "reply": {"tool_calls": [kept]}, "after_tool": True},
        {"reply": read, "after_tool": False},
        {"reply": {"text": "Noted."}},
    ]
    alice.model.control("script", {"rules": rules})
    alice.ask("Alice", f"make a note of what {plan['url']} says")
    [note] = alice.rows("select id from agent_notes where body = %s", NOTED)
    share = {"name": "share_note", "arguments": {"note_id": note["id"]}}
    rules = [{"reply": {"tool_calls": [share]}, "after_tool": False}, {"reply": {"text": "?"}}]
    alice.model.control("script", {"rules": rules})
    question, _ = alice.ask("Alice", "share my note about the launch")
    [card] = alice.answers(question)
    close(alice, plan["token"])
    press(alice, "Alice", card)
    refused = "not everybody here can open the document"
    eventually(lambda: refused in in_group(alice), what="it is not shared")
    assert not alice.rows("select from agent_notes where id = %s", note["id"]), "it goes, too"


def close(world: World, token: str) -> None:
    """Somebody closes the document, of which nobody has asked for a minute."""
    world.platform.post("/documents/change", token=token, link="closed")
    world.rows(
        "update bot_private.told_documents set open_at = open_at - interval '61 seconds'"
        " where token = %s returning 1",
        token,
    )


def test_what_an_earlier_private_answer_told_is_not_shared_without_its_document(
    alice: World, known: set[str]
) -> None:
    closed = document(alice, HIDDEN)
    first = alone(alice, asked(alice, closed["url"], secret=HIDDEN)[0], known)
    known.add(first["message_id"])
    plan = document(alice, OTHER)
    question, _ = asked(alice, plan["url"], secret=f"{OTHER}|{HIDDEN}")
    looked_up(alice, question)
    (offer,) = new_to_alice(alice, known)
    known.add(offer["message_id"])
    says = {"text": f"{OTHER}, and the other one was {HIDDEN}."}
    rules = [{"when": {"in": "last", "regex": OTHER}, "reply": says}]
    read = {"tool_calls": [{"name": "read_document", "arguments": {"url": plan["url"]}}]}
    alice.model.control("script", {"rules": [*rules, {"reply": read, "after_tool": False}]})
    press(alice, "Alice", offer)
    eventually(lambda: new_to_alice(alice, known), what="the private answer")
    (shown,) = new_to_alice(alice, known)
    assert HIDDEN in markdown(shown)
    alice.platform.post("/documents/change", token=plan["token"], link="tenant_readable")
    before = in_group(alice).count("I didn't share that")
    press(alice, "Alice", shown)
    eventually(lambda: in_group(alice).count("I didn't share that") > before, what="it is refused")
    assert HIDDEN not in in_group(alice)


def test_whoever_is_not_connected_is_told_so_and_nothing_is_read_for_them(alice: World) -> None:
    plan = document(alice, link="tenant_readable")
    read = {"tool_calls": [{"name": "read_document", "arguments": {"url": plan["url"]}}]}
    alice.model.control("mode", {"mode": "rules"})
    rules = [{"reply": read, "after_tool": False}, {"reply": {"text": "Please connect."}}]
    alice.model.control("script", {"rules": rules})
    question, _ = alice.ask("Bob", f"what does {plan['url']} say?")
    assert "/connect shows it again" in tool_results(alice)[-1]
    eventually(lambda: shown_to(alice, "Bob"), what="Bob alone is shown how to connect")
    (card,) = shown_to(alice, "Bob")
    [link] = LINK.findall(markdown(card))
    decide(alice, "Bob", link)
    eventually(
        lambda: alice.rows("select from user_tokens where open_id = %s and granted_at is not null",
                           alice.people["Bob"]),
        what="Bob is connected",
    )  # fmt: skip
    alice.settled(Origin("again", question).turn_id)
    assert SECRET in tool_results(alice)[-1], "what he asked goes on by itself"


def test_answers_go_when_not_everybody_can_open_it_any_more(alice: World) -> None:
    plan = document(alice, link="tenant_readable")
    question, said = asked(alice, plan["url"])
    assert SECRET in said
    alice.platform.post("/documents/change", token=plan["token"], link="closed")
    look_again(alice, plan["token"])
    eventually(
        lambda: all(one["deleted"] for one in alice.answers(question)),
        what="the answer is withdrawn",
        within_s=90,
    )
    assert alice.stored(question) == []
    assert (
        alice.rows("select from bot_private.told_documents where token = %s", plan["token"]) == []
    )


def test_what_was_told_of_a_closed_document_is_not_told_again(alice: World) -> None:
    plan = document(alice, ONCE, link="tenant_readable")
    question, said = asked(alice, plan["url"], secret=ONCE)
    assert ONCE in said
    repeats = [
        {"when": {"in": "prompt", "regex": ONCE}, "reply": {"text": f"It was {ONCE}."}},
        {"reply": {"text": "I don't know."}},
    ]
    alice.model.control("script", {"rules": repeats})
    again, said = alice.ask("Alice", "what was the launch code?")
    assert ONCE in said, "it is known as long as everybody can open it"

    close(alice, plan["token"])
    alice.model.forget()
    for who in ("Alice", "Bob"):
        assert ONCE not in alice.ask(who, "which launch code was it?")[1]
    assert ONCE not in json.dumps(alice.model.requests(), ensure_ascii=False)
    eventually(
        lambda: all(one["deleted"] for q in (question, again) for one in alice.answers(q)),
        what="what told of it is withdrawn",
    )
