"""The same bot with its memory in Supabase: user-scoped tokens over HTTP, real policies."""

from __future__ import annotations

import pytest

from lab.doubles.lite import SupabaseLite
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_private_answers import (
    ASKED,
    answered,
    press,
    shown_after,
    shown_to,
    tell,
)


@pytest.fixture(scope="module")
def bot_options(supabase_lite: SupabaseLite) -> dict[str, str]:
    return {
        "SUPABASE_URL": supabase_lite.url,
        "SUPABASE_PUBLISHABLE_KEY": supabase_lite.publishable_key,
        "SUPABASE_SECRET_KEY": supabase_lite.secret_key,
        "SUPABASE_JWT_SECRET": supabase_lite.jwt_secret,
    }


@pytest.fixture
def world(world: World, supabase_lite: SupabaseLite) -> World:
    world.database_url = supabase_lite.database_url  # where the memory is
    return world


def test_a_mention_becomes_a_card_and_a_row_in_supabase(world: World) -> None:
    question, card = world.ask("Alice", "remember the milk")
    (row,) = world.settled(question)
    assert row["content"] == card
    assert row["user_id"] == world.people["Alice"]


def test_the_follow_up_knows_what_was_said(world: World) -> None:
    first, _ = world.ask("Alice", "remember the oat milk")
    world.model.forget()
    world.ask("Alice", "what was it?", root_id=first)
    (request,) = world.model.requests()
    assert "remember the oat milk" in str(request["body"])


def test_what_was_told_elsewhere_is_offered_shown_and_shared(world: World) -> None:
    alone = tell(world, "Alice")
    world.ask("Alice", ASKED)
    (offer,) = eventually(lambda: shown_to(world, "Alice"), what="an offer")
    world.model.forget()

    # the first click finds a web process that has not reached Supabase yet
    eventually(lambda: "On it" in press(world, "Alice", offer)["toast"]["content"], what="a press")
    shown = answered(world, offer)
    assert "hunter2" in str(world.model.requests()[-1]["body"])
    card = shown_after(world, "Alice", offer)
    (row,) = world.stored(shown)
    assert row["conversation_id"] == f"feishu:{alone}:main"
    press(world, "Alice", card)
    (sent,) = world.answers(answered(world, card))
    assert markdown(sent) == markdown(card)
