"""Names through the real processes: kept behind the turn, and known again after a restart."""

from __future__ import annotations

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World


def names(world: World) -> dict[str, str]:
    """The table of people."""
    return {row["open_id"]: row["name"] for row in world.rows("select * from people")}


def test_names_outlive_the_process_that_asked_for_them(world: World) -> None:
    alice, bob = world.people["Alice"], world.people["Bob"]
    world.ask("Alice", "@Bob likes blue")
    eventually(lambda: {alice, bob} <= names(world).keys(), what="both are known")
    assert (names(world)[alice], names(world)[bob]) == ("Alice", "Bob")
    assert world.bot_id not in names(world)

    with world.without_scopes("contact:user.basic_profile:readonly"):
        world.replace_worker()
        question, _ = world.ask("Alice", "hello")

    (row,) = world.rows(
        "select actor_name from agent_messages where turn_id = %s and role = 'user'", question
    )
    assert row == {"actor_name": "Alice"}
