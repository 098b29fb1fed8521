"""A message by its Feishu id: what was said to the bot and by it in this chat, and in no other."""

from __future__ import annotations

import pytest

from memory.store import MemoryStore
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def test_what_one_said_and_was_told_is_found_by_its_message(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "first card", "second card")
    turn_id = f"om_Tea?_{alice.chat_id}"

    question = await memory.said(alice, turn_id)
    card = await memory.said(group.turn("alice", thread="another"), f"{turn_id}_card1")

    assert question is not None
    assert (question.role, question.content) == ("user", "Tea?")
    assert card is not None
    assert (card.role, card.content) == ("assistant", "second card")


async def test_what_others_were_told_here_is_found_and_nothing_of_other_chats(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Tea?", "a card")
    card = f"om_Tea?_{alice.chat_id}_card0"

    told = await memory.said(group.turn("bob"), card)
    assert told is not None
    assert told.content == "a card"
    assert await memory.said(group.turn("alice", chat="there"), card) is None
    assert await memory.said(group.turn("alice", tenant="other"), card) is None
    assert await memory.said(alice, "om_never") is None
