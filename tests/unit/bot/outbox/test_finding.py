"""What may have been sent is looked for where it would stand, and taken only if it is certain."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bot.feishu import cards
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuError
from bot.feishu.models import RawMessage
from bot.feishu.other_events import CommentPlace, CommentReply, CommentThread, elements_of
from bot.outbox.delivery import Delivered, InComment, Target, Undeliverable
from bot.outbox.finding import (
    UUID_HOLDS_S,
    Doubt,
    OutcomeUnknown,
    deliver_comment,
    find_answers,
    find_comment,
    find_sent,
    unsure_while_sending,
)
from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, Job
from bot.services import Services
from memory.models import StoredCard
from memory.scope import memory_context
from tests.support.rows import every_row

pytestmark = pytest.mark.anyio

BOT = "cli_bot"
SINCE_S = 1_800_000_000
DOUBT = Doubt(BOT, SINCE_S * 1000, lambda: SINCE_S + UUID_HOLDS_S + 1)
IN_CHAT = Target("", "oc_1", in_thread=False)
ANSWER = StoredCard(0, "Answer", "pending")
FILE = StoredCard(1, "[file: plan.txt]", "pending", file={"name": "plan.txt"})
COMMENT = InComment(CommentPlace("doccn", "docx", "c1"), "r1")
HERE = memory_context(chat_id="doc:doccn:c1", root="", subject="ou_ann", actor="ou_ann")


def said(kind: str, content: str, *, sender: str = BOT, at_s: int = SINCE_S) -> RawMessage:
    return RawMessage("om_there", "", "", "", "oc_1", kind, sender, "app_id", "app", at_s * 1000,
                      False, content, ())  # fmt: skip


def shown_card(turn_id: str, sender: str = BOT) -> RawMessage:
    card = cards.answer_card("Answer", element_id=cards.answer_id(turn_id, 0))
    return said("interactive", cards.card_content({"user_dsl": json.dumps(card)}), sender=sender)


@dataclass
class Chat:
    """Lists its messages, or refuses to."""

    messages: list[RawMessage] = field(default_factory=list)
    refusal: FeishuError | None = None

    async def get_message(self, message_id: str) -> list[RawMessage]:
        return []

    async def list_messages(self, *_: Any, **__: Any) -> list[RawMessage]:
        if self.refusal:
            raise self.refusal
        return self.messages


async def found(chat: Chat, card: StoredCard = ANSWER) -> Delivered | None:
    return await find_sent(cast(FeishuClient, chat), IN_CHAT, DOUBT, "om_q", card, {})


async def test_a_card_that_is_there_is_found() -> None:
    assert await found(Chat([shown_card("om_q")])) == Delivered("Answer", "om_there")
    assert await found(Chat([shown_card("om_other")])) is None


async def test_in_more_messages_than_are_read_a_missing_card_may_be_there() -> None:
    with pytest.raises(OutcomeUnknown):
        await found(Chat([shown_card("om_other")] * 500))


async def test_while_feishu_is_busy_nobody_is_asked_to_look() -> None:
    with pytest.raises(FeishuError):
        await found(Chat(refusal=FeishuError(99991400)))


async def test_a_file_of_that_name_from_long_before_is_another() -> None:
    there = said("file", json.dumps({"file_key": "f", "file_name": "plan.txt"}))
    before = said("file", there.content, at_s=SINCE_S - 3600)
    assert await found(Chat([there]), FILE) == Delivered(FILE.content, "om_there")
    assert await found(Chat([before]), FILE) is None


async def test_of_the_cards_that_answer_a_question_those_of_this_app_are_listed() -> None:
    chat = Chat([shown_card("om_q", "cli_other"), shown_card("om_other")])
    question = Target("om_q", "oc_1", in_thread=True)
    assert await find_answers(cast(FeishuClient, chat), question, DOUBT) == []
    chat.messages.append(shown_card("om_q"))
    assert await find_answers(cast(FeishuClient, chat), question, DOUBT) == ["om_there"]


@dataclass
class Document:
    """A thread of comments, with what `Services` gives to read it and answer there."""

    replies: tuple[tuple[str, str, str], ...] = ()  # id, author, words
    known: bool = False
    refusal: FeishuError | None = None

    @property
    def feishu(self) -> Document:
        return self

    comments = own_person = store = feishu
    open_id = "ou_bot"

    async def look_up(self) -> Document:
        return self

    async def said(self, *_: object) -> object:
        return self if self.known else None

    async def thread(self, place: CommentPlace) -> CommentThread:
        replies = [
            CommentReply(id, author, SINCE_S, tuple(elements_of(words)))
            for id, author, words in self.replies
        ]
        return CommentThread("c1", "a passage", is_whole=False, replies=tuple(replies))

    async def reply(self, *_: object) -> str:
        raise self.refusal or AssertionError("it is not said")


ASKED, BOTS = ("r1", "ou_ann", "When?"), ("r2", "ou_bot", "Answer")


@pytest.mark.parametrize(
    ("replies", "known", "is_found"),
    [
        ((ASKED, BOTS), False, True),
        ((ASKED, BOTS), True, False),  # it is what was said to an earlier question
        ((BOTS, ASKED), False, False),
        ((ASKED, ("r2", "ou_bob", "Answer")), False, False),
        ((ASKED, ("r2", "ou_bot", "Something else")), False, False),
    ],
)
async def test_a_comment_is_the_answer_if_the_bot_said_it_after_the_question(
    replies: tuple[tuple[str, str, str], ...], known: bool, is_found: bool
) -> None:
    services = cast(Services, Document(replies, known))
    delivery = await find_comment(services, HERE, COMMENT, DOUBT, "om_q", ANSWER)
    assert delivery == (Delivered("Answer", "comment:docx:r2") if is_found else None)


@pytest.mark.parametrize(("code", "maybe_done"), [(1069301, True), (99991400, False)])
async def test_a_comment_may_have_been_said_where_feishu_does_not_say_what_failed(
    code: int, maybe_done: bool
) -> None:
    document = cast(FeishuClient, Document(refusal=FeishuError(code)))
    with pytest.raises(FeishuError) as failure:
        await deliver_comment(document, COMMENT, "Answer")
    assert failure.value.maybe_done is maybe_done


@every_row(("failure", "unsure"), [(Undeliverable("gone"), False), (RuntimeError("cut"), True)])
def test_what_is_refused_for_good_was_not_sent(failure: Exception, unsure: bool) -> None:
    lease = Lease(Job(1, EVENT_TASK, {}, None, 1), 1, lambda _: None)
    with pytest.raises(type(failure)), unsure_while_sending(lease):
        raise failure
    assert lease.unsure is unsure
