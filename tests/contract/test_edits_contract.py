"""An edited message over every backend: its new text stands in the old one's place."""

from __future__ import annotations

import pytest

from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.exchanges import deliver, exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio

OLD, NEW = "the quince harvest is in Ostermark", "the quince harvest is in Westermark"


async def edit(memory: MemoryStore, here: AgentMemoryContext, by_turn: str, text: str) -> bool:
    message = f"om_{OLD}_{here.chat_id}"
    heard = f"@Memo {text}"
    return await memory.replace_message(message, here.chat_id, text, heard, by_turn=by_turn)


async def asked(memory: MemoryStore, here: AgentMemoryContext, turn_id: str) -> list[str]:
    return texts(await memory.begin_turn(here, turn_id=turn_id, content="And now?"))


async def test_the_new_text_takes_the_place_of_the_old_and_of_what_told_it(
    memory: MemoryStore, group: Group
) -> None:
    alice, bob, notices = group.turn("alice"), group.turn("bob"), group.message("notices")
    await exchange(memory, alice, OLD, "The harvest: Ostermark.")
    await memory.merge_working_memory(
        alice, scope="chat", patch={"harvest": OLD}, turn_id=f"om_{OLD}_{alice.chat_id}"
    )
    await exchange(memory, bob, "What about tea?", "At four.")
    before = await asked(memory, bob, notices)

    changed = await edit(memory, bob, notices, NEW)

    assert changed
    assert before == [OLD, "The harvest: Ostermark.", "What about tea?", "At four.", "And now?"]
    opened = await memory.begin_turn(alice, turn_id=group.message("after"), content="And then?")
    assert texts(opened)[:4] == [NEW, "What about tea?", "At four.", "And now?"]
    assert opened.working_memory.chat == {}
    [said, *_] = opened.history
    assert (said.actor_id, said.message_id) == (alice.user_id, f"om_{OLD}_{alice.chat_id}")


async def test_an_edited_reply_still_stands_under_what_it_quotes(
    memory: MemoryStore, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    reply, above = f"om_{OLD}_{alice.chat_id}", group.message("above")
    await memory.begin_turn(alice, turn_id=reply, content=OLD, quotes=above)

    await edit(memory, bob, group.message("notices"), NEW)

    [line, *_] = (await memory.begin_turn(bob, turn_id=group.message("q"), content="?")).history
    assert (line.content, line.replies_to) == (NEW, above)


async def test_a_message_that_says_the_same_is_left_alone(
    memory: MemoryStore, group: Group
) -> None:
    alice, bob, notices = group.turn("alice"), group.turn("bob"), group.message("notices")
    await exchange(memory, alice, OLD, "Noted.")
    await asked(memory, bob, notices)

    assert not await edit(memory, bob, notices, OLD)
    elsewhere = group.turn("bob", chat="elsewhere")
    assert not await edit(memory, elsewhere, notices, NEW), "the message is of another chat"
    assert (await asked(memory, bob, notices))[:2] == [OLD, "Noted."]


async def test_an_answer_that_was_being_made_of_the_old_text_is_not_stored(
    memory: MemoryStore, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    notices, late = group.message("notices"), group.message("late")
    await exchange(memory, alice, OLD, "Noted.")
    for turn_id in (late, notices):
        await asked(memory, bob, turn_id)

    await edit(memory, bob, notices, NEW)

    given = [f"om_{OLD}_{alice.chat_id}"]
    state, _ = await memory.record_reply(
        bob, turn_id=late, cards=["In Ostermark."], source_ids=given
    )
    assert state == "open"
    assert (await asked(memory, bob, late))[:1] == [NEW]
    state, _ = await memory.record_reply(
        bob, turn_id=late, cards=["In Westermark."], source_ids=given
    )
    await deliver(memory, bob, late, ["In Westermark."])
    assert state == "pending"
