"""The private answer to a question that was asked in a group, and its publication there.

It is a turn of the person's p2p conversation, begun by their press: only now the model sees what
they may read elsewhere. What is shared is the text of the shown cards and nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from bot.agents.prompts.drawn_on import noting_sources
from bot.answering.answering import answer as answer_question
from bot.answering.documents import audience_of, note_document
from bot.answering.question import Turn, language
from bot.documents.links import DocumentLink, LinkKind
from bot.features.feature import PressTurn
from bot.features.private_answers import texts
from bot.features.private_answers.ephemeral_answer import answer_alone, take_away
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, Reply
from bot.outbox.delivery import Aside
from bot.services import Services
from bot.text.languages import Language
from memory.models import OpenTurn
from memory.scope import memory_context
from memory.tables.buttons import ButtonStore, NewButton
from memory.tables.private import PrivateStore
from memory.tables.told_documents import ToldDocumentStore

SHARE = "private.share"


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where a private answer is shown. `where` says where the question was asked: chat_id, root_id,
    turn_id. `beside`: the card that was pressed stood in that group, else in p2p."""

    where: Mapping[str, str]
    beside: bool
    card_id: str

    def target(self, person: str) -> Aside:
        return Aside(person, self.where["chat_id"] if self.beside else "")


async def answer_privately(
    services: Services, request: TurnRequest, received_ms: int, answer_place: AnswerPlace
) -> None:
    """Answers a question where only the person reads. Raises what is worth another attempt: then a
    card that was shown before may be shown again."""
    target = answer_place.target(request.sender_open_id)
    await answer_alone(
        services, request, received_ms, target, partial(_answered, answer_place=answer_place)
    )
    if answer_place.beside:  # in p2p the offer stays
        await take_away(services, answer_place.card_id)


async def publish(services: Services, press_turn: PressTurn) -> Reply:
    """The cards of the private answer that has the button, as they were shown to who shares them
    now. Where a document behind it is closed it can be pressed again."""
    context, press = press_turn.context, press_turn.press
    person = context.actor_id
    place = memory_context(
        chat_id=press.chat_id,
        root=press.root_id,
        subject=person,
        actor=person,
        tenant_key=context.tenant_key,
        chat_type="p2p",
        actor_tenant=context.actor_tenant,
    )
    answer = await PrivateStore(services.rpc).shown(place, press.payload["answer_id"])
    if not answer:
        return Reply(texts.say("gone", press_turn.language))
    with noting_sources() as sources:
        text = "\n".join(answer)
        document_store = ToldDocumentStore(services.rpc)
        documents = await document_store.behind(place, press.payload["answer_id"], text)
        if not await _may_tell(services, press_turn, documents, text):
            await ButtonStore(services.rpc).release_share(press_turn.turn_id)
            return Reply(texts.say("closed-document", press_turn.language))
    return Reply("", cards=answer, given=tuple(sources))


async def _may_tell(
    services: Services, press_turn: PressTurn, documents: Sequence[tuple[str, str]], text: str
) -> bool:
    """Whether everybody in the group can open all of the documents (kind and token) now; then what
    is shared goes with them. Raises `StoreError`."""
    audience = audience_of(services, press_turn.context)
    for kind, token in documents:
        link = DocumentLink(cast(LinkKind, kind), token)
        if not await audience.is_open(link):
            return False
        if not await note_document(services, press_turn.context, press_turn.turn_id, link, text):
            return False
    return True


async def _answered(
    services: Services, turn: Turn, open_turn: OpenTurn, *, answer_place: AnswerPlace
) -> Reply:
    """The model's answer, with what it draws on noted; of its buttons only the one that shares
    it."""
    with noting_sources() as sources:
        answer = await answer_question(services, turn, open_turn)
    with_notes = any("note" in call["name"] for call in answer.tool_calls)
    await PrivateStore(services.rpc).draw_on(
        turn.context, turn.id, sorted(sources), with_notes=with_notes
    )
    share = _share(turn, answer_place, language(services, turn, open_turn))
    foot = replace(answer.foot, bare=True) if answer.foot and answer.foot.ended else None
    return replace(
        Reply(answer.text, (share,), answer.tool_calls, foot=foot, given=answer.given),
        means=answer.means,
    )


def _share(turn: Turn, answer_place: AnswerPlace, tongue: Language) -> NewButton:
    label = texts.say("share-here" if answer_place.beside else "share-there", tongue)
    payload = {**answer_place.where, "answer_id": turn.id}
    return NewButton(label, "share", payload, "p2p", FOLLOW_UP_LIVES_S)
