"""Whom a reply can name, and whom it may notify."""

from __future__ import annotations

from dataclasses import replace

from bot.answering.question import Turn, notifiable_people, people_of
from bot.feishu.events import Mention
from bot.listening.transcript import ChannelConversation, MessageRecord
from tests.unit.bot.answering.test_showing import scene


def turn_with(*said: MessageRecord) -> Turn:
    _, turn, _ = scene()
    conversation = ChannelConversation("oc_1", 0, 1, said)
    return replace(turn, heard=replace(turn.heard, conversation=conversation))


def test_another_bot_that_talks_there_can_be_named_and_is_not_notified() -> None:
    turn = turn_with(MessageRecord("Otto", "ou_otto", "done", 1, is_bot=True))
    assert "ou_otto" in people_of(turn)
    assert "ou_otto" not in notifiable_people(turn)
    assert "ou_ann" in notifiable_people(turn)


def test_a_mention_without_a_person_is_nobody() -> None:
    turn = turn_with()
    nobody = Mention(key="@_user_2", open_id="", name="Gone", is_bot=False, tenant_key="t")
    request = replace(turn.request, mentions=(*turn.request.mentions, nobody))
    chat = replace(turn.chat, request=request)
    assert people_of(replace(turn, chat=chat)) == ["ou_ann", "ou_lee"]
