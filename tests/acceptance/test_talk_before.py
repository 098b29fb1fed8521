"""The first question in a chat sees what people said there just before, unless it is gone."""

from __future__ import annotations

import pytest
import requests

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, prompt_of
from tests.acceptance.test_welcome import newcomer


def prompt(world: World) -> str:
    """Everything that the last request said."""
    return "\n".join(text for _, text in prompt_of(world.model.requests()[-1]))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("the caterer is Plum & Sons", "who is the caterer?"),
        ("办公室搬到五楼了", "办公室在几楼？"),
    ],
)
def test_what_was_said_before_anybody_named_the_bot_is_in_the_window(
    world: World, said: str, asked: str
) -> None:
    world.say("Bob", said)
    world.ask("Alice", asked)

    assert prompt(world).count(f"Bob: {said}") == 1


def test_so_is_what_was_said_after_a_conversation_had_ended(world: World) -> None:
    question, _ = world.ask("Alice", "the handover is on 3 March")
    world.settled(question)
    world.rows(
        "update chat_conversations set last_activity = last_activity - 3600000,"
        " started_at = started_at - 3600000 where chat_id = %s returning chat_id",
        world.group,
    )
    world.replace_worker()
    world.say("Bob", "the handover moved to 10 March")
    world.ask("Alice", "when is the handover?")

    text = prompt(world)
    assert 0 < text.index("handover is on 3 March") < text.index("Bob: the handover moved to 10")


def test_what_was_taken_back_is_not(world: World) -> None:
    taken_back = world.say("Bob", "the caterer is Plum & Sons")
    world.platform.post("/recall", message_id=taken_back, **{"as": world.people["Bob"]})
    world.ask("Alice", "who is the caterer?")

    assert "Plum" not in prompt(world)


def test_what_somebody_said_before_having_it_forgotten_is_not(world: World) -> None:
    world.say("Bob", "the caterer is Plum & Sons")
    world.rows(
        "insert into forgotten_people (mark) values (person_mark(%s)) returning mark",
        world.people["Bob"],
    )
    world.ask("Alice", "who is the caterer?")
    assert "Plum" not in prompt(world)

    world.settled(world.say("Alice", f"@{world.bot_name} and who is it now?"))
    assert "Plum" not in prompt(world), "the conversation that began with the answer"


def test_what_was_corrected_edited_and_taken_back_meanwhile_holds(world: World) -> None:
    """Three people speak to nobody in particular; a fourth, who read none of it, asks."""
    gone = world.say("Alice", "the caterer is Plum & Sons")
    world.say("Bob", "no, the caterer is Fig Brothers")
    edited = world.say("陈晨", "交接是3月3号")
    world.platform.post("/recall", message_id=gone, **{"as": world.people["Alice"]})
    world.platform.post(
        "/edit", message_id=edited, text="交接是3月10号", **{"as": world.people["陈晨"]}
    )
    newcomer(world, "Dana")
    world.platform.post("/join", chat_id=world.group, open_id=world.people["Dana"])
    world.ask("Dana", "who is the caterer, and when is the handover?")

    text = prompt(world)
    assert "Plum" not in text
    assert text.count("Bob: no, the caterer is Fig Brothers") == 1
    assert text.count("陈晨: 交接是3月10号") == 1
    assert "3月3号" not in text


def test_feishu_is_asked_once_for_it(world: World) -> None:
    world.say("Bob", "the caterer is Plum & Sons")
    requests.delete(f"{world.platform.url}/sandbox/api/requests", timeout=10)
    question, _ = world.ask("Alice", "who is the caterer?")
    world.settled(question)
    world.settled(world.ask("Alice", "and the florist?")[0])

    listed = eventually(
        lambda: [c for c in world.platform.calls("/open-apis/im/v1/messages") if _lists(c)],
        what="a list",
    )
    assert len(listed) == 1


def _lists(call: dict[str, object]) -> bool:
    return call["method"] == "GET" and call["path"] == "/open-apis/im/v1/messages"
