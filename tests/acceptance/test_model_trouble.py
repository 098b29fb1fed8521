"""A model that is down, slow or talks nonsense: nobody waits in silence, nobody sees its errors."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.support.patience import limit_s


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"MODEL_TIMEOUT_SECONDS": "5", "WORKER_CONCURRENCY": "4"}


def tell(world: World, **reply: object) -> None:
    world.model.control("script", {"rules": [{"reply": reply}]})
    world.model.control("mode", {"mode": "rules"})


@pytest.mark.parametrize(
    "trouble",
    [
        {"fault": "hang"},
        {"fault": "malformed"},
        {"status": 500, "body": "Traceback: secret upstream text"},
        {"status": 429, "body": {"error": {"message": "secret upstream text"}}},
        {"text": ""},
    ],
    ids=lambda trouble: str(trouble.get("fault") or trouble.get("status") or "empty"),
)
def test_an_honest_card_comes_and_the_question_is_kept(
    world: World, trouble: dict[str, object]
) -> None:
    tell(world, **trouble)
    started = time.monotonic()
    question, card = world.ask("Alice", "what is the plan?")

    assert time.monotonic() - started < limit_s(20)
    is_empty = "text" in trouble
    assert ("the model gave an empty answer" if is_empty else "I couldn't answer just now") in card
    assert "secret" not in card
    (row,) = world.settled(question)
    assert row["content"] == card
    world.model.control("mode", {"mode": "echo"})
    world.model.forget()
    world.ask("Alice", "and now?", root_id=question)
    (request,) = world.model.requests()
    assert "what is the plan?" in str(request["body"])


@pytest.mark.parametrize(
    ("status", "body", "english", "chinese"),
    [
        (401, {"error": {"message": "bad key"}}, "rejects the API key", "密钥无效"),
        (429, {"error": {"code": "insufficient_quota"}}, "out of credit", "额度已用完"),
    ],
)
def test_what_only_an_operator_can_mend_is_called_that(
    world: World, status: int, body: object, english: str, chinese: str
) -> None:
    tell(world, status=status, body=body)
    _, card = world.ask("Alice", "what is the plan?")
    assert english in card
    assert "An administrator has to fix this" in card
    assert "again in a moment" not in card
    _, card = world.ask("陈晨", "计划是什么？")
    assert chinese in card
    assert "请联系管理员处理" in card
    log = world.bot.workers[-1].output()
    assert '"event": "model.unavailable"' in log
    assert "OPENAI_" in log


def test_in_chinese_the_honest_card_is_chinese(world: World) -> None:
    tell(world, status=500, body="x")
    _, card = world.ask("陈晨", "计划是什么？")
    assert "抱歉" in card


def test_a_sign_of_work_appears_within_two_seconds_without_a_message(world: World) -> None:
    tell(world, text="done", delay_s=4)
    question = world.say("Alice", f"@{world.bot_name} take your time")

    def reactions() -> list[object]:
        messages = world.platform.messages(world.group)
        return next(m["reactions"] for m in messages if m["message_id"] == question)

    eventually(reactions, within_s=limit_s(2.5), what="a reaction")
    assert not world.answers(question), "there was no sign before the answer"
    world.answer(question)
    eventually(lambda: not reactions(), what="the reaction is taken back")
    assert len(world.platform.messages(world.group)) == 2


def test_other_threads_are_not_held_up(world: World) -> None:
    slow = {"when": [{"contains": "slowly"}], "reply": {"text": "slow", "delay_s": 4}}
    world.model.control("script", {"rules": [slow, {"reply": {"text": "quick"}}]})
    world.model.control("mode", {"mode": "rules"})
    waiting = world.say("Alice", f"@{world.bot_name} slowly")
    eventually(world.model.requests, what="the model is asked")
    world.ask("Bob", "hello")

    assert not world.answers(waiting)
    world.answer(waiting)


def test_a_provider_that_hangs_for_many_holds_up_nobody_else(world: World) -> None:
    """Twenty people wait for it, five times the worker's places; commands are answered meanwhile,
    and within the model's time everybody has an honest card."""
    tell(world, fault="hang")
    groups = [world.in_a_new_group() for _ in range(5)]
    asked = [(group, group.say("Alice", f"@{world.bot_name} {n}?")) for group in groups
             for n in range(4)]  # fmt: skip
    started = time.monotonic()
    _, card = world.ask("Bob", "/help")

    assert "/memory" in card
    assert time.monotonic() - started < limit_s(15)
    for group, question in asked:
        assert "Sorry, I couldn't answer just now" in group.answer(question)
    assert time.monotonic() - started < limit_s(40)


def test_one_refused_question_holds_up_nobody_else_and_is_told_in_time(world: World) -> None:
    """The endpoint refuses one request and asks it to come back in half a minute."""
    refused = {"when": [{"contains": "what first?"}], "times": 1,
               "reply": {"status": 429, "retry_after": 30}}  # fmt: skip
    world.model.control("script", {"rules": [refused, {"reply": {"text": "here it is"}}]})
    world.model.control("mode", {"mode": "rules"})
    others = [world.in_a_new_group() for _ in range(6)]
    first = world.say("Alice", f"@{world.bot_name} what first?")
    eventually(world.model.requests, what="the model is asked")
    started = time.monotonic()
    asked = [(group, group.say("Bob", f"@{world.bot_name} and you?")) for group in others]

    for group, question in asked:
        assert "here it is" in group.answer(question)
    assert time.monotonic() - started < limit_s(8)
    assert "Sorry, I couldn't answer just now" in world.answer(first)
    assert time.monotonic() - started < limit_s(8)


def test_a_slow_answer_arrives_whole_where_no_card_grows(world: World) -> None:
    """It is not ended by the limit for its first word."""
    plan = "The plan has eight steps, and the last is to rest."
    tell(world, text=plan, chunk_delay_s=1.5)
    started = time.monotonic()
    _, card = world.ask("Alice", "what is the plan?")

    assert card.endswith(plan)
    assert time.monotonic() - started > 5


def test_what_came_before_the_connection_broke_is_sent_where_no_card_grows(world: World) -> None:
    tell(world, text="The plan has eight steps. " * 10, fault="cut", chunk_delay_s=0.02)
    question, card = world.ask("Alice", "what is the plan?")

    assert "The plan has eight steps." in card
    assert "the connection to the model was lost" in str(world.answers(question))
    (row,) = world.settled(question)
    assert "connection" not in row["content"]


def choices(*choices: object) -> dict[str, object]:
    return {"body": {"choices": list(choices)}}


def choice(finish_reason: str, **message: str) -> dict[str, object]:
    return {"message": {"role": "assistant", **message}, "finish_reason": finish_reason}


TOO_LONG = {
    "status": 400,
    "body": {"error": {"code": "context_length_exceeded", "message": "secret"}},
}
FILTERED = {"status": 400, "body": {"error": {"code": "content_filter", "message": "secret"}}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (choices(choice("stop", content=" ")), "Sorry, the model gave an empty answer"),
        (choices(choice("stop", refusal="Not that.")), "The model declined"),
        (FILTERED, "The model declined"),
        (TOO_LONG, "more than the model can read"),
        (choices(choice("stop", reasoning="Well.")), "returns its answers as reasoning text"),
    ],
    ids=["empty", "refusal", "filtered prompt", "too long", "only thoughts"],
)
def test_what_the_model_does_not_say_is_said_as_such(
    world: World, answer: dict[str, object], said: str
) -> None:
    tell(world, **answer)
    _, card = world.ask("Alice", "what do you think?")

    assert said in card
    assert "secret" not in card


@pytest.mark.parametrize("wish", ["1", "date"])
def test_an_endpoint_that_asks_for_patience_gets_it(world: World, wish: str) -> None:
    then = int(time.time()) + 3
    busy = {"status": 429, "body": {"error": {"message": "slow down"}},
            "retry_after": formatdate(then, usegmt=True) if wish == "date" else wish}  # fmt: skip
    world.model.control("script", {"steps": [busy, {"text": "here it is"}]})
    world.model.control("mode", {"mode": "script"})

    _, card = world.ask("Alice", "is anybody there?")

    assert "here it is" in card
    first, second = (request["at"] for request in world.model.requests())
    wished = then if wish == "date" else first + 0.9
    assert wished <= second < first + 4


@pytest.mark.parametrize(
    ("command", "honest", "author"),
    [
        ("/digest", "My language model didn't answer", "陈晨: "),
        ("/摘要", "大模型没有响应", "陈晨："),
    ],
)
def test_a_digest_without_its_model_says_so_and_quotes_people_only(
    world: World, command: str, honest: str, author: str
) -> None:
    group = world.in_a_new_group()
    group.settled(group.ask("陈晨", "the medlar budget is 400 euros")[0])
    tell(group, status=500, body="upstream")
    group.settled(group.ask("Bob", "what is the budget of the medlars?")[0])
    question, card = group.ask("Alice", command)

    assert card.count(honest) == 1
    assert card.index(honest) < card.index("medlar budget is 400")
    assert author in card
    assert "Bot" not in card
    assert "couldn't answer" not in card
    recorded = (
        "select f.record ->> 'model_failed' as reason from agent_turn_records r,"
        " bot_private.whole_record(r.short) f (record) where r.turn_id = %s"
    )
    (row,) = eventually(lambda: group.rows(recorded, question), what="the record")
    assert row["reason"]
