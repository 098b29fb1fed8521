"""A reply that is seen while it is written: one card, in order, not too fast, and as stored."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import requests

from lab.doubles.processes import eventually
from memory.text import display_width
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.support import profiles

pytestmark = pytest.mark.slow

WORDS = "The launch is on 3 March & <at id=all></at> everything else <b>waits</b> until then. " * 4
AT_ONCE_S = 0.25
UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.STREAMING


@pytest.fixture
def live(world: World) -> World:
    """The running bot, with nothing yet in the platform's record of calls."""
    world.platform.post("/switches", **{"cardkit:card:write": True})
    requests.delete(f"{world.platform.url}/sandbox/api/requests", timeout=10)
    return world


def answer_with(world: World, **reply: Any) -> None:
    """The model's next answers, in small pieces with a pause between them."""
    slowly = {"text": WORDS, "chunk_delay_s": 0.06, **reply}
    world.model.control("script", {"rules": [{"reply": slowly}]})


def operations(world: World) -> list[dict[str, Any]]:
    """Every call on cards, in order."""
    return world.platform.calls("/open-apis/cardkit/")


def frames(world: World) -> list[str]:
    """The texts that were streamed, without how long it has taken."""
    streamed = [c for c in operations(world) if c["path"].endswith("/content")]
    return [c["body"]["content"] for c in streamed if "/stage/" not in c["path"]]


def assert_one_finished_card(world: World, question: str) -> dict[str, Any]:
    (row,) = world.settled(question)
    (sent,) = [m for m in world.answers(question) if not m["deleted"]]
    assert row["content"].encode() == markdown(sent).encode()
    assert row["message_id"] == sent["message_id"]
    assert not sent["streaming"]
    eventually(lambda: not world.rows(UNFINISHED), what="the job is done")
    return sent


def kept_card(world: World, question: str) -> dict[str, Any] | None:
    found = world.rows("select * from agent_cards where turn_id = %s", question)
    return found[0] if found else None


def test_the_card_grows_in_order_and_ends_with_the_stored_text(live: World) -> None:
    answer_with(live)
    question, _ = live.ask("Alice", "when is the launch?")
    sent = assert_one_finished_card(live, question)

    calls = [c for c in operations(live) if "sequence" in (c["body"] or {})]
    numbers = [call["body"]["sequence"] for call in calls]
    assert numbers == sorted(set(numbers))
    assert all(call["status"] == 200 for call in operations(live))
    shown = frames(live)
    assert len(shown) > 1
    assert all(
        display_width(later) - display_width(one) >= 20 for one, later in itertools.pairwise(shown)
    )
    assert sent["card_id"]
    assert markdown(sent).startswith(f"<at id={live.people['Alice']}></at> The launch")
    assert "<at id=all>" not in "".join(shown) + markdown(sent)
    assert kept_card(live, question)["streaming"] is False


def test_frames_are_at_least_half_a_second_apart(live: World) -> None:
    answer_with(live, text=WORDS * 3, chunk_delay_s=0.03)
    question, _ = live.ask("Alice", "quickly, please")
    assert_one_finished_card(live, question)

    times = [c["at_ms"] for c in operations(live) if c["path"].endswith("/content")]
    assert len(times) > 1
    assert all(later - first >= 500 for first, later in itertools.pairwise(times))


def test_a_quick_answer_is_one_ordinary_card(live: World) -> None:
    live.model.control("mode", {"mode": "echo"})
    question, card = eventually(lambda: quickly(live), what="an answer that takes no time")
    assert_one_finished_card(live, question)

    assert card.endswith("hello")
    assert operations(live) == []


def quickly(world: World) -> tuple[str, str] | None:
    """A question and its card, which came at once: on a busy machine the first may not."""
    world.model.forget()
    requests.delete(f"{world.platform.url}/sandbox/api/requests", timeout=30)
    question, card = world.ask("Alice", "hello")
    (asked,) = world.model.requests()
    (sent,) = world.answers(question)
    return (question, card) if sent["create_ms"] / 1000 - asked["at"] < AT_ONCE_S else None


def test_the_card_says_that_the_bot_thinks_and_which_tool_runs(live: World) -> None:
    tool = {"tool_calls": [{"name": "current_time", "arguments": {}}], "delay_s": 2.5}
    live.model.control("script", {"steps": [tool, {"text": "Half past nine.", "delay_s": 2}]})
    question, _ = live.ask("Alice", "what time is it?")
    sent = assert_one_finished_card(live, question)

    created = json.loads(operations(live)[0]["body"]["data"])
    assert created["body"]["elements"][0]["content"].endswith("Thinking…")
    assert created["config"]["streaming_mode"] is True
    assert any(frame.endswith("Using current_time…") for frame in frames(live))
    assert markdown(sent).endswith("Half past nine.")


def test_what_a_reasoning_model_thinks_is_never_seen(live: World) -> None:
    answer_with(live, reasoning="SECRET " * 20, text=f"<think>SECRET thoughts</think>{WORDS}")
    question, _ = live.ask("Alice", "think hard")
    sent = assert_one_finished_card(live, question)

    assert len(frames(live)) > 1
    assert "SECRET" not in json.dumps(operations(live))
    assert "SECRET" not in markdown(sent)
    assert "think" not in markdown(sent)


def test_an_answer_longer_than_a_card_goes_on_in_ordinary_cards(live: World) -> None:
    paragraphs = "\n\n".join(f"{n}. {'word ' * 300}" for n in range(16))
    answer_with(live, text=paragraphs, chunk_delay_s=0.0005)
    question = live.say("Alice", f"@{live.bot_name} tell me everything")
    rows = live.settled(question)

    sent = {m["message_id"]: m for m in live.answers(question)}
    assert len(rows) > 1
    assert [row["content"] for row in rows] == [markdown(sent[row["message_id"]]) for row in rows]
    assert [bool(sent[row["message_id"]]["card_id"]) for row in rows] == [True] + [False] * (
        len(rows) - 1
    )


def test_killed_while_streaming_the_same_card_is_finished(live: World) -> None:
    answer_with(live, chunk_delay_s=0.15)
    question = live.say("Alice", f"@{live.bot_name} tell me")
    eventually(lambda: len(frames(live)) > 3, what="the card streams")
    before = operations(live)[-1]["body"]["sequence"]
    live.bot.workers[-1].kill()
    answer_with(live, chunk_delay_s=0.02)
    live.bot.start_worker()

    sent = assert_one_finished_card(live, question)
    numbers = [c["body"]["sequence"] for c in operations(live) if "sequence" in (c["body"] or {})]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > before + 900
    assert sent["card_id"] == kept_card(live, question)["card_id"]
    created = [c for c in operations(live) if c["path"] == "/open-apis/cardkit/v1/cards"]
    assert len(created) == 1
    assert sum(is_from_bot(m) for m in live.platform.messages(live.group)) == 1


def test_killed_after_the_reply_is_stored_the_card_gets_that_reply(live: World) -> None:
    answer_with(live, chunk_delay_s=0.03)
    live.platform.post("/faults", path_prefix="/open-apis/cardkit/v1/cards/", method="PATCH",
                       delay_s=6, times=1)  # fmt: skip
    question = live.say("Alice", f"@{live.bot_name} tell me")
    eventually(lambda: live.stored(question), what="the reply is stored")
    asked = len(live.model.requests())
    live.bot.workers[-1].kill()
    live.bot.start_worker()

    assert_one_finished_card(live, question)
    assert len(live.model.requests()) == asked, "the model was asked again"


def test_killed_between_creating_and_sending_there_is_one_card(live: World) -> None:
    answer_with(live, chunk_delay_s=0.1)
    live.platform.post("/faults", path_prefix="/open-apis/im/v1/messages", method="POST",
                       delay_s=1, times=1)  # fmt: skip
    question = live.say("Alice", f"@{live.bot_name} tell me")
    eventually(lambda: kept_card(live, question), what="the card is kept")
    live.bot.workers[-1].kill()
    live.bot.start_worker()

    assert_one_finished_card(live, question)
    assert sum(is_from_bot(m) for m in live.platform.messages(live.group)) == 1


def test_a_question_that_is_taken_back_takes_its_card_with_it(live: World) -> None:
    answer_with(live, chunk_delay_s=0.1)
    question = live.say("Alice", f"@{live.bot_name} tell me")
    eventually(lambda: len(frames(live)) > 1, what="the card streams")
    live.platform.post("/recall", message_id=question, **{"as": live.people["Alice"]})

    def gone() -> bool:
        mine = [m for m in live.platform.messages(live.group) if is_from_bot(m)]
        return bool(mine) and all(m["deleted"] for m in mine)

    eventually(gone, what="the card is withdrawn")
    assert live.stored(question) == []


def test_a_card_that_cardkit_gives_up_is_replaced_by_an_ordinary_one(live: World) -> None:
    answer_with(live, chunk_delay_s=0.05)
    for method in ("POST", "PATCH"):
        live.platform.post("/faults", path_prefix="/open-apis/cardkit/v1/cards/", method=method,
                           code=200750, times=1)  # fmt: skip
    question = live.say("Alice", f"@{live.bot_name} tell me")
    sent = assert_one_finished_card(live, question)

    assert not sent["card_id"]
    live.replace_worker()


def test_without_the_scope_replies_are_ordinary_cards_and_cardkit_is_left_alone(
    live: World,
) -> None:
    live.platform.post("/switches", **{"cardkit:card:write": False})
    answer_with(live, chunk_delay_s=0.05)
    first, _ = live.ask("Alice", "tell me")
    sent = assert_one_finished_card(live, first)
    assert not sent["card_id"]
    assert len(operations(live)) == 1

    live.platform.post("/switches", **{"cardkit:card:write": True})
    second, _ = live.ask("Alice", "tell me again")
    assert_one_finished_card(live, second)
    assert len(operations(live)) == 1, "CardKit was asked again within ten minutes"
    live.replace_worker()


def test_the_buttons_come_with_the_final_text_and_can_be_pressed(live: World) -> None:
    asking = {"name": "suggest_follow_ups", "arguments": {"questions": ["And in April?"]}}
    steps = [
        {"tool_calls": [asking]},
        {"text": WORDS, "chunk_delay_s": 0.05},
        {"text": "In April too."},
    ]
    live.model.control("script", {"steps": steps})
    question, _ = live.ask("Alice", "when is the launch?")
    sent = assert_one_finished_card(live, question)

    buttons = [e for e in sent["card"]["body"]["elements"] if e["tag"] == "button"]
    assert [button["text"]["content"] for button in buttons] == ["And in April?"]
    assert "And in April?" not in json.dumps(frames(live))
    bob = live.people["Bob"]
    clicked = live.platform.post("/click", message_id=sent["message_id"], index=0, **{"as": bob})
    assert clicked["toast"]["type"] == "success"
    eventually(lambda: "In April too." in str(live.platform.messages(live.group)), what="an answer")


def test_an_answer_of_two_seconds_takes_five_calls(live: World) -> None:
    live.model.control("script", {"rules": [{"reply": {"text": WORDS, "duration_s": 2}}]})
    question, _ = live.ask("Alice", "at your usual pace, please")
    sent = assert_one_finished_card(live, question)

    messages = live.platform.calls("/open-apis/im/v1/messages/")
    replies = [call for call in messages if call["method"] == "POST"]
    assert sent["card_id"]
    own = [
        one
        for one in operations(live)
        if one["path"].endswith("/cards") or sent["card_id"] in one["path"]
    ]
    calls = [(one["at_ms"], one["method"], one["path"]) for one in own]
    assert len(calls) + len(replies) <= 5, calls
