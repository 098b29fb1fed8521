"""Whose memory a message is answered with, and in whose name: never by its words alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bot.answering.question import subject_of, turn_of_request
from bot.answering.request_chat import chat_of
from bot.feishu.fields import Mention
from bot.listening.turn_request import TurnRequest
from bot.people.people_directory import Names
from bot.settings import Settings
from bot.text.roster import Person
from memory.models import MESSAGE_ORIGIN
from memory.scope import AgentMemoryContext

BOT = Person("ou_bot", "Memo")
ASKED = TurnRequest(
    id="om_1",
    origin=MESSAGE_ORIGIN,
    sender_open_id="ou_alice",
    tenant_key="t",
    chat_id="oc_1",
    chat_type="group",
    text="when?",
    create_time_ms=0,
    sender_tenant="guests",
)


def mention(open_id: str, *, is_bot: bool = False) -> Mention:
    return Mention(f"@_{open_id}", open_id, open_id, is_bot=is_bot, tenant_key="t")


def mentioning(*mentions: Mention, chat_type: str = "group") -> TurnRequest:
    return replace(ASKED, mentions=mentions, chat_type=chat_type)


def context_of(request: TurnRequest) -> AgentMemoryContext:
    services: Any = SimpleNamespace(
        settings=Settings(),
        people=SimpleNamespace(of=lambda tenant: Names),
        rpc=None,
        transcripts=None,
    )
    heard: Any = None
    return turn_of_request(chat_of(services, request, BOT), heard, 0).context


ANN, BOB = mention("ou_ann"), mention("ou_bob")
OTHER_BOT, THE_BOT = mention("ou_helper", is_bot=True), mention("ou_bot")


@pytest.mark.parametrize(
    ("request_", "subject"),
    [
        (mentioning(), "ou_alice"),
        (mentioning(THE_BOT), "ou_alice"),
        (mentioning(OTHER_BOT), "ou_alice"),
        (mentioning(mention("")), "ou_alice"),
        (mentioning(THE_BOT, OTHER_BOT, ANN, BOB), "ou_ann"),
        (mentioning(BOB, ANN), "ou_bob"),
        (mentioning(ANN, chat_type="topic_group"), "ou_ann"),
        (mentioning(ANN, chat_type="p2p"), "ou_alice"),
    ],
)
def test_the_subject_is_the_first_person_mentioned_and_in_p2p_the_sender(
    request_: TurnRequest, subject: str
) -> None:
    assert subject_of(request_, BOT.open_id) == subject


def test_whoever_is_mentioned_the_sender_acts_under_their_own_tenant() -> None:
    context = context_of(mentioning(ANN))
    assert (context.user_id, context.actor_id) == ("ou_ann", "ou_alice")
    claims = context.claims()
    assert (claims["sub"], claims["actor"]) == ("ou_ann", "ou_alice")
    assert claims["actor_tenant"] == "guests"


@pytest.mark.parametrize("kind", ["group", "topic_group", "", "new kind"])
def test_what_is_not_known_to_be_private_is_a_group(kind: str) -> None:
    assert context_of(mentioning(chat_type=kind)).claims()["chat_type"] == "group"
