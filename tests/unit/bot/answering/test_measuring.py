"""What an answer in a group says of its conversation is counted, without ids."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import REGISTRY

from bot.answering.hearing import HearingResult
from bot.answering.question import Turn, count_conversation
from bot.answering.request_chat import chat_of
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.transcript import ChannelConversation, MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.mentions import Person
from bot.people.people_directory import People
from bot.services import Services
from bot.settings import Settings
from memory.models import MESSAGE_ORIGIN
from memory.scope import memory_context
from tests.support.rows import every_row

SAID = tuple(
    MessageRecord(
        who, f"ou_{who}", text, 1_000_000 * n, who == "Memo", f"om_{n}", ours=who == "Memo"
    )
    for n, (who, text) in enumerate(
        [("Ann", "is the hall booked?"), ("Memo", "It is."), ("Bob", "the printer is broken")]
    )
)


def turn_in(chat_type: str, subject: str) -> Turn:
    request = TurnRequest(
        id="om_q", origin=MESSAGE_ORIGIN, sender_open_id="ou_Ann", tenant_key="t", chat_id="oc_1",
        chat_type=chat_type, text="which hall?", create_time_ms=1,
    )  # fmt: skip
    asked = IncomingMessage("om_q", "Ann", "ou_Ann", "which hall?", 3_000_000, mentions_bot=True)
    heard = HearingResult(asked, Decision(True, Reason.EXPLICIT_TRIGGER))
    heard = heard.within(ChannelConversation("oc_1", 0, 3_000_000, SAID))
    context = memory_context(chat_id="oc_1", root="om_q", subject=subject, actor="ou_Ann")
    names = People(cast(Any, None)).of("t")
    services = SimpleNamespace(settings=Settings(), rpc=None, transcripts=None)
    chat = chat_of(cast(Services, services), request, Person("ou_Memo", "Memo"))
    return Turn("om_q", MESSAGE_ORIGIN, chat, heard, context, "which hall?", 1, "om_q", names)


def counted() -> dict[str, float]:
    samples = {
        "sender": ("bot_subjects_total", {"about": "sender"}),
        "another": ("bot_subjects_total", {"about": "another"}),
        "messages": ("bot_conversation_messages_sum", {}),
        "people": ("bot_conversation_people_sum", {}),
        "sure": ("bot_topics_total", {"topic": "sure"}),
        "unsure": ("bot_topics_total", {"topic": "unsure"}),
    }
    return {key: REGISTRY.get_sample_value(*sample) or 0 for key, sample in samples.items()}


@every_row(("subject", "about"), [("ou_Ann", "sender"), ("ou_Bob", "another")])
def test_an_answer_in_a_group_counts_its_conversation(subject: str, about: str) -> None:
    before = counted()
    count_conversation(turn_in("group", subject))
    more = {key: value - before[key] for key, value in counted().items()}
    assert more[about] == 1
    assert (more["messages"], more["people"]) == (4, 2)
    assert more["sure"] + more["unsure"] == 1


def test_nothing_of_p2p_is_counted() -> None:
    before = counted()
    count_conversation(turn_in("p2p", "ou_Ann"))
    assert counted() == before


def test_a_message_in_a_thread_has_no_topic_of_the_main_chat() -> None:
    heard = turn_in("group", "ou_Ann").heard
    threaded = replace(heard, message=replace(heard.message, root_id="om_0"), discussion=None)
    assert threaded.within(ChannelConversation("oc_1", 0, 1, SAID)).discussion is None
