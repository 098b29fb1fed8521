"""The frames of an answer while it is written: the reply as far as it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from bot.agents.running_turns import Progress
from bot.answering.hearing import HearingResult
from bot.answering.question import Turn
from bot.answering.reply import ProgressFrames, cards_of, voice_of
from bot.answering.request_chat import chat_of
from bot.feishu.events import Mention
from bot.feishu.markup import AT_TAG
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.turn_request import TurnRequest
from bot.mentions import Person
from bot.people.people_directory import Names, People
from bot.services import Services
from bot.settings import Settings, load
from memory.models import MESSAGE_ORIGIN
from memory.scope import memory_context

BOT = Person("ou_bot", "Memo", is_bot=True)
ANN_LEE = Mention(key="@_user_1", open_id="ou_lee", name="", is_bot=False, tenant_key="t")
ANSWER = (
    "The plan:\n\n- `one`\n- two\n\n@Ann Lee, see [it](https://plan.example).\n\n```\ncode\n```\nso"
)


@dataclass(frozen=True)
class ChatServices:
    """All that a voice, and the chat it speaks in, need of the services."""

    settings: Settings
    rpc: None = None
    transcripts: None = None


def scene() -> tuple[Services, Turn, Names]:
    """Ann asks about somebody whose name is not known yet."""
    names = People(cast(Any, None)).of("t")
    names.learn([("ou_ann", "Ann")], keep=False)
    request = TurnRequest(
        id="om_question", origin=MESSAGE_ORIGIN, sender_open_id="ou_ann", tenant_key="t",
        chat_id="oc_1", chat_type="group", text="what?", create_time_ms=1, mentions=(ANN_LEE,),
    )  # fmt: skip
    heard = HearingResult(IncomingMessage("om_question", "Ann", "ou_ann", "what?", 1),
                  Decision(True, Reason.EXPLICIT_TRIGGER))  # fmt: skip
    context = memory_context(chat_id="oc_1", root="om_q", subject="ou_ann", actor="ou_ann")
    services = cast(Services, ChatServices(load()))
    chat = chat_of(services, request, BOT)
    turn = Turn(request.id, MESSAGE_ORIGIN, chat, heard, context, "what?", 1, "om_question", names)
    return services, turn, names


def test_every_frame_is_composed_like_the_reply_that_says_as_much() -> None:
    services, turn, names = scene()
    names.learn([("ou_lee", "Ann Lee")], keep=False)
    showing = ProgressFrames(services, turn, "en")

    for end in range(len(ANSWER) + 1):
        shown = showing(Progress(ANSWER[:end]))
        whole = ProgressFrames(services, turn, "en")(Progress(ANSWER[:end]))
        assert shown == whole
    assert shown == cards_of(ANSWER, voice_of(services, turn), nothing="-")[0]


def test_a_name_that_becomes_known_meanwhile_counts_from_the_next_frame() -> None:
    services, turn, names = scene()
    showing = ProgressFrames(services, turn, "en")
    showing(Progress("One.\n\nTwo.\n\nThr"))
    names.learn([("ou_lee", "Ann Lee")], keep=False)

    assert "@Ann" not in showing(Progress("One.\n\nTwo.\n\n@Ann"))
    shown = showing(Progress("One.\n\nTwo.\n\n@Ann Lee: three"))
    assert AT_TAG.findall(shown) == ["ou_ann", "ou_lee"]
