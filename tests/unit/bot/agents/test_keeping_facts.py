"""The tool that keeps facts: it says only what the call changed, and what that replaces."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agents.authority.rules import AskerExchange
from bot.agents.prompts.prompt import Prompt
from bot.agents.tool_types import ToolFailed
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.own_tools import update_working_memory
from memory.models import GroupFact, WorkingMemory
from memory.scope import memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore

pytestmark = pytest.mark.anyio

BOB = memory_context(chat_id="oc_1", root="om_1", subject="ou_b", actor="ou_b")
HANDOVER = GroupFact(
    "7-ab", "handover_date", "3 March", "chat", "ou_a", "ou_a", "2026-11-28T05:00:00+00:00"
)
EXTENSION = GroupFact("8-cd", "extension", "203", "user", "ou_a", "ou_a", HANDOVER.at)


class Held:
    """A database that holds one fact more than it is given, and keeps the calls."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    async def call(self, function: str, params: Any, context: object) -> Any:
        self.params = {"function": function, **params}
        return {"gym": "4471", "new": "fact"}

    async def close(self) -> None:
        """Nothing to close."""


def deps(held: Held, said: str) -> ToolDeps:
    memory = WorkingMemory(group=(HANDOVER, EXTENSION))
    now = datetime(2026, 11, 28, tzinfo=UTC)
    prompt = Prompt("Memo", said, (), "Bob", memory, now, context=BOB, turn_id="om_2")
    return ToolDeps(BOB, NoteStore(held), MemoryStore(held), prompt, exchange=AskerExchange(said))


async def test_a_result_names_only_what_the_call_changed() -> None:
    asked = deps(Held(), "remember that lunch is at noon")

    outcome = await update_working_memory(asked, "thread", {"lunch": "noon"})

    assert outcome.result == (
        'Successfully updated the working memory of the thread: set {"lunch": "noon"}.'
    )


async def test_the_model_says_which_fact_of_the_group_it_replaces() -> None:
    held = Held()

    outcome = await update_working_memory(
        deps(held, "the handover is on the tenth"), "thread", {"handover": "10 March"}, ["7-ab"]
    )

    assert held.params["p_replaces"] == '["7-ab"]'
    assert outcome.result.endswith("; replaced 7-ab.")
    assert "3 March" not in outcome.result


async def test_without_the_models_word_the_askers_own_words_decide() -> None:
    held = Held()
    asked = deps(held, "remember that the handover moved to 10 March")

    await update_working_memory(asked, "thread", {"handover": "10 March"})

    assert held.params["p_replaces"] == '["7-ab"]'


@pytest.mark.parametrize("named", ["9-zz", EXTENSION.id])
async def test_what_was_not_shown_or_is_a_colleagues_own_is_not_replaced(named: str) -> None:
    held = Held()

    with pytest.raises(ToolFailed, match="Nothing was changed"):
        await update_working_memory(deps(held, "lunch moved"), "thread", {"lunch": "1"}, [named])

    assert held.params == {}
