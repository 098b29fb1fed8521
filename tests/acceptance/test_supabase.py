"""The same bot with its memory in Supabase: user-scoped tokens over HTTP, real policies."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World
from tests.support.lite import SupabaseLite


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
