"""A fault that retrying cannot cure: an honest card, a job for the operators, and no silence."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from bot.queue.operator_actions import QueueOperations, Reference
from lab.doubles.processes import eventually
from memory.models import Origin
from tests.acceptance.conftest import World, markdown

pytestmark = pytest.mark.slow

_FAULT = """
    create function public.fault() returns trigger language plpgsql as
      $$ begin if new.content like '%poison%' then raise 'a fault'; end if; return new; end $$;
    create trigger fault before insert on {} for each row execute function public.fault();
"""


@pytest.fixture(params=["agent_messages"])
def faulty(world: World, request: pytest.FixtureRequest) -> Iterator[World]:
    with psycopg.connect(world.database_url, autocommit=True) as database:
        database.execute(_FAULT.format(request.param).encode())
        yield world
        database.execute("drop function public.fault() cascade")


@pytest.mark.parametrize(
    ("text", "sorry"), [("poison, please", "something went wrong"), ("请说 poison", "出了问题")]
)
def test_who_asked_is_told_with_a_reference_and_the_next_question_is_answered(
    faulty: World, text: str, sorry: str
) -> None:
    question, card = faulty.ask("Alice", text)

    assert sorry in card
    [job] = eventually(
        lambda: faulty.rows(
            "select id, args::text from feishu_bot.jobs"
            " where status = 'failed' and args::text like %s",
            f"%{question}%",
        ),
        what="the job is kept as failed",
    )
    assert f"J{job['id']}" in card
    _, answer = faulty.ask("Alice", "and now?", root=question)
    assert "and now?" in answer
    assert len(faulty.answers(question)) == 1


def test_an_operator_tries_again_and_the_question_is_answered_beside_the_excuse(
    world: World,
) -> None:
    with psycopg.connect(world.database_url, autocommit=True) as database:
        database.execute(_FAULT.format("agent_messages").encode())
        try:
            question, sorry = world.ask("Alice", "poison, or not?")
        finally:
            database.execute("drop function public.fault() cascade")
    [job] = eventually(
        lambda: world.rows(
            "select id from feishu_bot.jobs where status = 'failed'"
            " and args ->> 'excused' = 'true' and args::text like %s",
            f"%{question}%",
        ),
        what="the job is kept as failed",
    )

    queue = QueueOperations(world.database_url)
    assert queue.retry(Reference("J", str(job["id"])))
    [_, answer] = eventually(
        lambda: found if len(found := world.under(question)) == 2 else None, what="an answer"
    )

    assert "poison, or not?" in markdown(answer)
    assert sorry != markdown(answer)
    eventually(lambda: not queue.failed(Reference("J", str(job["id"]))), what="the job is over")
    [row] = world.settled(Origin("retry", question, "1").turn_id)
    assert row["content"] == markdown(answer)
    assert row["message_id"] == answer["message_id"]


def test_what_was_not_meant_for_the_bot_gets_no_card(faulty: World) -> None:
    with psycopg.connect(faulty.database_url, autocommit=True) as database:
        database.execute(_FAULT.replace("public.fault", "public.other_fault")
                         .replace("trigger fault", "trigger other_fault")
                         .replace("new.content", "new.reason")
                         .replace("%poison%", "no_trigger")
                         .format("agent_decisions").encode())  # fmt: skip
        try:
            said = faulty.say("Alice", "nobody is asked here")
            eventually(
                lambda: faulty.rows(
                    "select 1 from feishu_bot.jobs where status = 'failed' and args::text like %s",
                    f"%{said}%",
                ),
                what="the job is kept as failed",
            )
            assert not faulty.answers(said)
        finally:
            database.execute("drop function public.other_fault() cascade")


def test_a_reply_that_is_stored_is_what_is_sent_in_the_end(world: World) -> None:
    """The fault comes after the reply was stored: it is delivered, not an excuse."""
    fault = """
        create function public.fault() returns trigger language plpgsql as
          $$ begin if new.status = 'sent' then raise 'a fault'; end if; return new; end $$;
        create trigger fault before update on agent_messages
          for each row execute function public.fault();
    """
    with psycopg.connect(world.database_url, autocommit=True) as database:
        database.execute(fault.encode())
        try:
            question, card = world.ask("Alice", "hello there")
            eventually(
                lambda: world.rows(
                    "select 1 from feishu_bot.jobs where status = 'failed' and args::text like %s",
                    f"%{question}%",
                ),
                what="the job is kept as failed",
            )
        finally:
            database.execute("drop function public.fault() cascade")
    assert "hello there" in card
    assert [markdown(message) for message in world.answers(question)] == [card]
    assert [row["content"] for row in world.stored(question)] == [card]
