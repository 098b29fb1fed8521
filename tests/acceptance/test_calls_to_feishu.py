"""Every call of the bot to Feishu, as the platform records it, is one that Feishu's own SDK makes,
with its fields and types; and every card that it sends is one that Feishu documents.

One run uses each feature that calls Feishu; what the SDK does not know is named with its source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lab.doubles.processes import clean_environment, eventually
from tests.acceptance import test_files_read as files_read
from tests.acceptance import test_files_sent as files_sent
from tests.acceptance import test_private_answers as private_answers
from tests.acceptance.conftest import World
from tests.acceptance.test_proactive import taken_back
from tests.support import hostile_files, profiles
from tests.support.client_calls import METHODS, sent_by
from tests.support.documented_cards import faults
from tests.support.forking import run_script
from tests.support.lark_sdk import (
    Endpoint,
    Findings,
    compare_call,
    endpoint_of,
    endpoints,
    lark_oapi,
)

pytestmark = pytest.mark.slow

# What lark-oapi 1.7.5 has no builder for.
WITHOUT_BUILDER = {
    "GET /open-apis/bot/v3/info": "open.feishu.cn, bot-v3/bot/get",
    "POST /open-apis/ephemeral/v1/send": "open.feishu.cn, im-v1/message-card, ephemeral cards",
    "POST /open-apis/ephemeral/v1/delete": "the same page",
}


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.STREAMING


@pytest.fixture(scope="module")
def known() -> Iterator[list[Endpoint]]:
    with lark_oapi() as lark:
        yield endpoints(lark)


def answered_slowly(world: World) -> None:
    """Long enough to be streamed; with follow-ups, and asked again."""
    text = "The launch is on 3 March, and everything else waits until then. " * 6
    world.model.control("script", {"steps": [{"text": text, "chunk_delay_s": 0.2}]})
    question, _ = world.ask("Alice", "when is the launch?")
    world.settled(question)
    world.model.control("mode", {"mode": "echo"})
    world.settled(world.ask("Alice", "and what comes next?", root_id=question)[0])


def finished_in_two_calls(world: World) -> None:
    """Where Feishu refuses to finish a live card in one."""
    cards = "/open-apis/cardkit/v1/cards/"
    world.platform.post("/faults", path_prefix=cards, method="POST", code=200220, times=1)
    text = "The launch is on 3 March, and everything else waits until then. " * 6
    world.model.control("script", {"rules": [{"reply": {"text": text, "duration_s": 2}}]})
    world.settled(world.ask("Alice", "when is the launch?")[0])


def quoted_and_looked_back(world: World) -> None:
    group = world.in_a_new_group()
    said = group.say("Bob", "the venue is the blue hall")
    question, _ = group.ask("Alice", "is that right?", reply_to=said, quote=True)
    group.settled(question)


def withdrawn(world: World) -> None:
    question, _ = world.ask("Bob", "is this still needed?")
    world.settled(question)
    taken_back(world, "Bob", question)
    eventually(lambda: all(m["deleted"] for m in world.answers(question)), what="it is withdrawn")


def settings_shown(world: World) -> None:
    for command in ("/settings", "/memory"):
        world.settled(world.say("Alice", f"@{world.bot_name} {command}"))


def file_read(world: World) -> None:
    data = hostile_files.docx("plans", table=(("fruit", "left"), ("apple", "7391")))
    file = files_read.send(world, "Bob", "plan.docx", data)
    world.settled(world.ask("Alice", "how many are left?", reply_to=file, quote=True)[0])


def welcomed(world: World) -> None:
    group = world.in_a_new_group(told=True)
    eventually(lambda: group.platform.messages(group.group), what="its first words")


def card_streams_are_refused(world: World) -> None:
    """Without CardKit a card is sent whole, and a reaction shows that the bot is at work."""
    with world.without_scopes("cardkit:card:write"):
        slow = {"text": "Nothing at all. " * 9, "delay_s": 2.5, "chunk_delay_s": 0.2}
        world.model.control("script", {"steps": [slow] * 2})
        world.settled(world.ask("Bob", "what is new?")[0])  # is refused, which is remembered
        world.settled(world.ask("Bob", "and now?")[0])


def examined(world: World) -> None:
    """The doctor looks at the app."""
    environment = {**clean_environment(), **world.bot.environment}
    done = run_script("doctor", env=environment)
    assert "Traceback" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def calls(processes: World) -> list[dict[str, Any]]:
    """What the platform recorded of a run through all of it."""
    for feature in (
        answered_slowly,
        finished_in_two_calls,
        quoted_and_looked_back,
        withdrawn,
        settings_shown,
        file_read,
        files_sent.test_a_table_comes_after_the_answer_that_names_it,
        files_sent.test_a_picture_is_sent_as_one,
        welcomed,
        card_streams_are_refused,
        private_answers.test_offered_shown_and_shared,
        examined,
    ):
        processes.model.control("mode", {"mode": "echo"})
        processes.model.forget()
        if feature.__module__ == files_sent.__name__:
            processes.model.control("mode", {"mode": "rules"})
        feature(processes.in_a_new_group())
    items: list[dict[str, Any]] = processes.platform.get("/requests")["items"]
    return [item for item in items if item["path"].startswith("/open-apis/")]


def place(call: dict[str, Any], known: list[Endpoint]) -> str:
    """The method and address of a call, as the SDK names it."""
    found = endpoint_of(call, known)
    return f"{call['method']} {found.template if found else call['path']}"


def test_every_method_of_the_client_takes_part(
    calls: list[dict[str, Any]], known: list[Endpoint]
) -> None:
    made = Counter(place(call, known) for call in calls)
    every = {name: sent_by(name) for name in METHODS}
    missing = {
        name
        for name, asked in every.items()
        if place({"method": asked.method, "path": asked.path}, known) not in made
    }
    assert missing == set()


def test_every_call_is_one_that_the_sdk_makes(
    calls: list[dict[str, Any]], known: list[Endpoint]
) -> None:
    findings, unknown = Findings(), Counter[str]()
    for call in calls:
        if endpoint := endpoint_of(call, known):
            compare_call(call, endpoint, findings)
        else:
            unknown[place(call, known)] += 1
    print(f"{len(calls)} calls, {len(findings.fields)} fields; unknown: {dict(unknown)}")
    assert set(unknown) == set(WITHOUT_BUILDER)
    assert findings.unknown == set()
    assert findings.wrong == set()
    assert len(findings.fields) > 40


def test_a_call_with_a_field_that_feishu_does_not_have_would_be_found(
    known: list[Endpoint],
) -> None:
    call = {
        "method": "POST", "path": "/open-apis/im/v1/messages/om_1/reply", "query": {"x": "1"},
        "body": {"content": {}, "msg_type": "text", "in_thread": True},
    }  # fmt: skip
    endpoint, findings = endpoint_of(call, known), Findings()
    assert endpoint
    compare_call(call, endpoint, findings)
    place = "POST /open-apis/im/v1/messages/:message_id/reply"
    assert findings.unknown == {f"{place} ?x", f"{place} in_thread"}
    assert [one.rpartition(": ")[0] for one in findings.wrong] == [f"{place} content"]


def cards_in(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cards that a call carries."""
    body = call["body"] if isinstance(call["body"], dict) else {}
    if body.get("msg_type") == "interactive":
        content = body.get("card") or json.loads(body["content"])
        if content.get("type") != "card":  # an entity that CardKit knows
            yield content
    elif call["method"] == "PATCH" and "content" in body:
        yield json.loads(body["content"])
    entity = body.get("card", body)
    if isinstance(entity, dict) and entity.get("type") == "card_json":
        yield json.loads(entity["data"])


def test_every_card_is_one_that_feishu_documents(calls: list[dict[str, Any]]) -> None:
    cards = [card for call in calls for card in cards_in(call)]
    tags = {tag for card in cards for tag in _tags(card)}
    print(f"{len(cards)} cards of {sorted(tags)}")
    assert {fault for card in cards for fault in faults(card)} == set()
    assert {"button", "collapsible_panel", "column_set", "form", "select_static"} <= tags


def _tags(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from ([node["tag"]] if isinstance(node.get("tag"), str) else [])
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from _tags(child)
