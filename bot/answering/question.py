"""Defines the turn of a message that will be answered, with its stop, its token limits and its
metrics."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.agents.embeddings import QuestionVector
from bot.agents.running_turns import OnProgress, Stop
from bot.answering.hearing import HearingResult, conversation_reply_args
from bot.answering.request_chat import RequestChat
from bot.answering.texts import say
from bot.feishu import events
from bot.listening.requests import asks
from bot.listening.transcript import ChannelConversation, MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.outbox.delivery import Target
from bot.outbox.foot import AnswerFooter
from bot.people.people_directory import Names
from bot.process import metrics
from bot.services import Services
from bot.text.languages import Language, last_own_language
from bot.text.roster import Person
from memory.models import OpenTurn, Origin
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType

_RECENT_S = 24 * 3600

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Turn:
    """One message and what it means; `context` says whose memory and which thread.

    `id` is the message's, or that of its `origin`. `reply_to` is the Feishu message the answer
    hangs under; "" where it stands in the chat by itself. `by_click`: the question stood on a
    button that somebody pressed, so they did not write it.
    `private`: only the person who asked sees the answer, which draws on all they may read.
    `names` are those of its tenant. `asked` is the question that was pressed, shown with the
    answer, and `foot` what stands below it. `stop` says when the answer is to end where it is;
    `settle` then gives what stays of its text. `spoken` is its `language`, once that was found out.
    `vector` is on its way where recall goes by meaning.
    """

    id: str
    origin: Origin
    chat: RequestChat
    heard: HearingResult
    context: AgentMemoryContext
    question: str
    received_ms: int
    reply_to: str
    names: Names
    on_progress: OnProgress | None = None
    settle: Callable[[str], str] = str
    spoken: Language | None = None
    stop: Stop | None = None
    asked: str | None = None
    foot: AnswerFooter | None = None
    by_click: bool = False
    private: bool = False
    vector: QuestionVector | None = None

    @property
    def request(self) -> TurnRequest:
        return self.chat.request

    @property
    def bot(self) -> Person:
        return self.chat.bot

    @property
    def unasked(self) -> bool:
        """Whether nobody put the question to the bot."""
        return self.origin.kind == "unasked"

    @property
    def in_group(self) -> bool:
        return self.request.chat_type != "p2p"

    @property
    def recent_s(self) -> int:
        """How far back (s) the chat's talk belongs to this conversation; 0: only the thread does.

        In the main chat of a group every mention opens a thread of its own; for who writes there it
        is one conversation.
        """
        return _RECENT_S if self.in_group and not self.request.in_thread else 0

    @property
    def target(self) -> Target:
        in_thread = self.in_group and self.context.root_id != MAIN_ROOT
        return Target(self.reply_to, self.request.chat_id, in_thread, self.request.in_place)

    @property
    def chat_type(self) -> ChatType:
        return self.request.audience


def turn_of_request(
    chat: RequestChat, hearing: HearingResult, received_ms: int, retry_number: int = 0
) -> Turn:
    """Resolves thread, subject and question of a message. `retry_number`: how many times
    an operator asked for another answer after the apology."""
    request, bot_open_id = chat.request, chat.bot.open_id
    origin = Origin("retry", request.id, str(retry_number)) if retry_number else request.origin
    context = chat.context_about(subject_of(request, bot_open_id))
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    question = events.question_text(request, bot_open_id) or request.text
    return Turn(
        id=origin.turn_id if retry_number else request.id,
        origin=origin,
        chat=chat,
        heard=hearing,
        context=context,
        question=question,
        received_ms=received_ms,
        reply_to=request.hangs_under,
        names=chat.services.people.of(request.tenant_key),
        by_click=request.origin.is_pressed,
    )


def with_opened(
    turn: Turn, open_turn: OpenTurn, conversation: ChannelConversation | None = None
) -> Turn:
    """The turn under the id that it has, with the chat's conversation, where that was not known
    before it was opened."""
    hearing = turn.heard.within(conversation) if conversation else turn.heard
    return replace(turn, id=open_turn.turn_id or turn.id, heard=hearing)


def subject_of(request: TurnRequest, bot_open_id: str) -> str:
    """Whose memory is meant: the first mentioned human, else the sender (by open_id). In p2p it is
    always the sender's."""
    if request.audience == "p2p":
        return request.sender_open_id
    for mention in request.mentions:
        if mention.open_id and not mention.is_bot and mention.open_id != bot_open_id:
            return mention.open_id
    return request.sender_open_id


def turn_language(services: Services, turn: Turn, open_turn: OpenTurn) -> Language:
    """The language that the chat or the environment set, else that of the question; of a command
    and a question without words (a number, a name, a link), the last that was spoken there."""
    if turn.spoken:
        return turn.spoken
    set_here = open_turn.rules.get("language") or services.settings.chat_language
    if set_here in ("zh", "en"):
        return "zh" if set_here == "zh" else "en"
    own_lines = [one.content for one in open_turn.own(turn.context.actor_id) if one.role == "user"]
    return last_own_language([*own_lines, turn.question], _names(turn)) or "en"


def _names(turn: Turn) -> list[str]:
    """Of whom the question can name: they are in no language."""
    mentioned_names = [mention.name for mention in turn.request.mentions]
    return [*mentioned_names, *map(turn.names.name, people_of(turn)), turn.bot.name]


def people_of(turn: Turn) -> list[str]:
    """open_ids of whom a name in the reply can mean: those who speak and who are mentioned."""
    mentioned_ids = [m.open_id for m in turn.request.mentions]
    talking = list(turn.heard.conversation.participants) if turn.heard.conversation else []
    person_ids = [turn.request.sender_open_id, turn.context.user_id, *mentioned_ids, *talking]
    return [
        open_id for open_id in dict.fromkeys(person_ids) if open_id and open_id != turn.bot.open_id
    ]


def notifiable_people(turn: Turn) -> list[str]:
    """open_ids that an at-tag in the reply may reach: everybody of `people_of`, but of the bots
    only one that the asking person named, or that asked and so waits for the answer."""
    request = turn.request
    by_bot = request.sender_type != "user"
    talk = turn.heard.conversation.messages if turn.heard.conversation else ()
    bots = {m.open_id for m in request.mentions if m.is_bot}
    notified_bots = set() if by_bot else set(bots)
    bots |= {record.author_id for record in talk if record.is_bot}
    if by_bot:
        bots.add(request.sender_open_id)
        notified_bots |= {request.sender_open_id} if asks(turn.question) else set()
    return [one for one in people_of(turn) if one not in bots or one in notified_bots]


def delivered_reply_args(
    services: Services,
    turn: Turn,
    before: Sequence[MessageRecord],
    answer_text: str,
    message_id: str,
) -> dict[str, object] | None:
    """What the chat's conversation is told when a card was delivered as `message_id`."""
    root = None if turn.context.root_id == MAIN_ROOT else turn.context.root_id
    earlier = [one for one in before if one.message_id != message_id]  # as Feishu lists the card
    record = MessageRecord(
        author=turn.bot.name,
        author_id=turn.bot.open_id,
        content=answer_text,
        timestamp=int(services.clock() * 1000),
        is_bot=True,
        message_id=message_id,
        root_id=root,
        ours=True,
        quotes="" if root else turn.request.message_id,
    )
    return conversation_reply_args(turn.chat, turn.heard, earlier, record)


@contextlib.asynccontextmanager
async def stoppable(services: Services, turn: Turn, open_turn: OpenTurn) -> AsyncIterator[Stop]:
    """While it is entered the turn can be stopped; it may have been before a crash."""
    with services.stops.watching(turn.id) as stop:
        if open_turn.attempts > 1 and services.is_stopped and await services.is_stopped(turn.id):
            stop.ask()
        yield stop


def used_up_sentence(services: Services, turn: Turn, open_turn: OpenTurn) -> str:
    """The honest sentence at a limit of tokens; "" when there is none in the way."""
    who, place = turn.context.actor_id, turn.context.chat_id
    limit = services.allowance.reached(services.now().date(), who, place)
    if limit is None:
        return ""
    metrics.note_for_log(limit=limit)
    log.info("usage.limit_reached", turn_id=turn.id, limit=limit)
    reply_language = turn_language(services, turn, open_turn)
    return say(f"used-up-{limit}", reply_language, zone=services.settings.zone.key)


def count_conversation(turn: Turn) -> None:
    """Counts the conversation of a turn that was answered in a group."""
    if not turn.in_group:
        return
    about = "sender" if turn.context.user_id == turn.context.actor_id else "another"
    metrics.SUBJECTS.labels(about=about).inc()
    if conversation := turn.heard.conversation:
        people = {one.author_id for one in conversation.messages if not one.is_bot}
        metrics.CONVERSATION_MESSAGES.observe(len(conversation.messages))
        metrics.CONVERSATION_PEOPLE.observe(len(people))
    if discussion := turn.heard.discussion:
        topic = "unsure" if discussion.topic is None else "sure"
        metrics.TOPICS.labels(topic=topic).inc()
