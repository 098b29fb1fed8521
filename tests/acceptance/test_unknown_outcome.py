"""A card of which nobody knows whether it was sent, after Feishu has forgotten its uuid; and an
answer that comes late."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from bot.queue.operator_actions import QueueOperations, Reference
from lab.doubles.processes import eventually, stop
from tests.acceptance.conftest import World, markdown

pytestmark = pytest.mark.slow

_LIST = "/open-apis/im/v1/messages"
_AGE = """
    update feishu_bot.jobs set scheduled_at = null,
      args = args || jsonb_build_object(
        'maybe_sent_ms', (args ->> 'maybe_sent_ms')::bigint - 3060000)
    where args::text like %s and status = 'waiting' and args ? 'maybe_sent_ms'
"""


@pytest.fixture(scope="module")
def platform_options() -> tuple[str, ...]:
    """Feishu forgets a uuid at once."""
    return ("--uuid-life", "0")


@pytest.fixture
def quiet(world: World) -> Iterator[World]:
    """Nothing is disturbed any more when the test is over."""
    yield world
    world.platform.forget_faults()


def asked(world: World, text: str, *, sent: bool) -> str:
    """A question whose card is in the chat, or is not, while the bot was told of a bad gateway;
    and that was an hour ago."""
    if sent:
        world.platform.disturb_replies(times=1, drop=True)
    world.platform.disturb_replies(times=0, status=502, body="bad gateway")
    question = world.say("Alice", f"@{world.bot_name} {text}")

    def grown_old() -> bool:
        with psycopg.connect(world.database_url, autocommit=True) as database:
            return database.execute(_AGE, [f"%{question}%"]).rowcount == 1

    eventually(grown_old, what="the job waits, unsure")
    assert len(world.under(question)) == int(sent)
    return question


def test_a_card_that_is_in_the_chat_is_found_there_and_not_sent_again(quiet: World) -> None:
    question = asked(quiet, "is it there?", sent=True)
    quiet.platform.forget_faults()

    [row] = quiet.settled(question)

    [card] = quiet.under(question)
    assert row["message_id"] == card["message_id"]
    assert row["content"] == markdown(card)


def test_a_card_that_is_not_in_the_chat_is_sent(quiet: World) -> None:
    question = asked(quiet, "is it not there?", sent=False)
    quiet.platform.forget_faults()

    [row] = quiet.settled(question)
    [card] = quiet.under(question)
    assert row["content"] == markdown(card)


def test_where_the_chat_cannot_be_read_an_operator_looks_and_nothing_is_sent(quiet: World) -> None:
    quiet.platform.post("/faults", path_prefix=_LIST, method="GET", times=0, code=99991672)
    question = asked(quiet, "who can tell?", sent=True)

    [job] = eventually(
        lambda: quiet.rows(
            "select id, args ->> 'failed_with' as why from feishu_bot.jobs"
            " where status = 'failed' and args::text like %s",
            f"%{question}%",
        ),
        within_s=90,
        what="the job is kept as failed",
    )

    assert job["why"] == "OutcomeUnknown"
    assert len(quiet.under(question)) == 1
    eventually(
        lambda: any("delivery.outcome_unknown" in worker.output() for worker in quiet.bot.workers),
        what="the log says so",
    )
    quiet.platform.forget_faults()
    assert QueueOperations(quiet.database_url).retry(Reference("J", str(job["id"])))
    [row] = quiet.settled(question)
    assert [row["message_id"]] == [card["message_id"] for card in quiet.under(question)]


@pytest.mark.parametrize(
    ("text", "note"),
    [("what of the launch?", "> Sorry for the late reply. This answers “"),
     ("发布会怎么样？", "> 抱歉，回复晚了。这是对“")],
)  # fmt: skip
def test_a_late_answer_says_to_which_question_and_is_stored_as_sent(
    quiet: World, text: str, note: str
) -> None:
    stop(quiet.bot.workers[-1])
    question = quiet.say("Alice", f"@{quiet.bot_name} {text}")
    older = """
        update feishu_bot.jobs set args = jsonb_set(
          args, '{payload,event,message,create_time}',
          to_jsonb(((args #>> '{payload,event,message,create_time}')::bigint - 660000)::text))
        where args::text like %s
    """

    def grown_old() -> bool:
        with psycopg.connect(quiet.database_url, autocommit=True) as database:
            return database.execute(older, [f"%{question}%"]).rowcount == 1

    eventually(grown_old, what="the event is queued")
    quiet.bot.start_worker()

    [row] = quiet.settled(question)
    [card] = quiet.under(question)
    assert markdown(card).startswith(note)
    assert text in markdown(card).partition("\n")[0]
    assert row["content"] == markdown(card)
