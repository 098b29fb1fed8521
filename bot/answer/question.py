"""A message that will be answered: whose memory, in which thread, by and to whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.agents.progress import OnProgress
from bot.agents.stopping import Stop
from bot.answer.hearing import Heard, told_args_of
from bot.feishu import events
from bot.feishu.events import MessageEvent
from bot.group.decisions import Reason
from bot.group.transcript import ChannelConversation, MessageRecord
from bot.languages import Language, language_of, says_words
from bot.mentions import Person
from bot.people.names import Names
from bot.reply.delivery import Target
from bot.reply.foot import Foot
from bot.services import Services
from memory.models import OpenTurn
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, memory_context, thread_root

_RECENT_S = 3600
REACTED = "reaction:"  # before a card's message_id: the id of the turn that a reaction leads to


@dataclass(frozen=True, slots=True)
class Turn:
    """One message and what it means; `context` says whose memory and which thread.

    `reply_to` is the Feishu message the answer hangs under; the turn's id may be one of ours.
    `by_click`: the question stood on a button that somebody pressed, so they did not write it.
    `anew`: how many times an operator wanted an answer beside the word that there is none.
    `private`: only the person who asked sees the answer, which draws on all they may read.
    `names` are those of its tenant. `asked` is the question that was pressed, shown with the
    answer, and `foot` what stands below it. `stop` says when the answer is to end where it is;
    `settle` then gives what stays of its text.
    """

    event: MessageEvent
    heard: Heard
    context: AgentMemoryContext
    question: str
    bot: Person
    received_ms: int
    reply_to: str
    names: Names
    on_progress: OnProgress | None = None
    settle: Callable[[str], str] = str
    stop: Stop | None = None
    asked: str | None = None
    foot: Foot | None = None
    by_click: bool = False
    anew: int = 0
    private: bool = False

    @property
    def id(self) -> str:
        """The message's, or one beside it where an earlier answer said that there is none."""
        return f"{self.event.message_id}~{self.anew}" if self.anew else self.event.message_id

    @property
    def unasked(self) -> bool:
        """Whether nobody put the question to the bot."""
        return self.heard.decision.reason is Reason.PROACTIVE

    @property
    def in_group(self) -> bool:
        return self.event.chat_type != "p2p"

    @property
    def recent_s(self) -> int:
        """How far back (s) the sender's exchanges in other threads of the chat go on with this one.

        In the main chat of a group every mention opens a thread of its own; for who writes there it
        is one conversation.
        """
        return _RECENT_S if self.in_group and not self.event.thread_id else 0

    @property
    def target(self) -> Target:
        in_thread = self.in_group and self.context.root_id != MAIN_ROOT
        return Target(self.reply_to, self.event.chat_id, in_thread)

    @property
    def chat_type(self) -> ChatType:
        return kind_of(self.event)


def begin(
    services: Services,
    event: MessageEvent,
    heard: Heard,
    bot: Person,
    received_ms: int,
    reply_to: str = "",
    anew: int = 0,
) -> Turn:
    """Resolves thread, subject and question of a message."""
    root = thread_root(
        message_id=event.message_id,
        root_id=event.root_id or None,
        chat_type=event.chat_type,
        reply_in_thread=services.settings.reply_in_thread,
    )
    context = memory_context(
        chat_id=event.chat_id,
        root=root,
        subject=subject_of(event, bot.open_id),
        actor=event.sender_open_id,
        tenant_key=event.tenant_key,
        chat_type=kind_of(event),
    )
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    question = events.question_text(event, bot.open_id) or event.text
    return Turn(
        event=event,
        heard=heard,
        context=context,
        question=question,
        bot=bot,
        received_ms=received_ms,
        reply_to=reply_to or event.message_id,
        names=services.people.of(event.tenant_key),
        by_click=bool(reply_to) and not event.message_id.startswith(REACTED),
        anew=anew,
    )


def is_pressed(turn_id: str) -> bool:
    """Whether somebody pressed the question of that turn and did not write it: a follow-up, or
    Again."""
    return turn_id.startswith("click:") or "~again" in turn_id


def kind_of(event: MessageEvent) -> ChatType:
    """Who reads what is said there: a topic group is a group, and so is what is not known."""
    return "p2p" if event.chat_type == "p2p" else "group"


def knowing(turn: Turn, conversation: ChannelConversation | None) -> Turn:
    """The turn with the chat's conversation, where that was not known before it was opened."""
    if conversation is None:
        return turn
    return replace(turn, heard=turn.heard.within(conversation))


def subject_of(event: MessageEvent, bot_open_id: str) -> str:
    """Whose memory is meant: the first mentioned human, else the sender (by open_id). In p2p it is
    always the sender's."""
    if kind_of(event) == "p2p":
        return event.sender_open_id
    for mention in event.mentions:
        if mention.open_id and not mention.is_bot and mention.open_id != bot_open_id:
            return mention.open_id
    return event.sender_open_id


def language(services: Services, turn: Turn, opened: OpenTurn) -> Language:
    """The language that the chat or the environment set, else that of the question; of a slash
    command and a question without words (a number, a name, a link), that of what was said."""
    set_here = opened.rules.get("language") or services.settings.chat_language
    if set_here in ("zh", "en"):
        return "zh" if set_here == "zh" else "en"
    if not turn.question.startswith(("/", "／")) and says_words(turn.question):
        return language_of([turn.question])
    said = (message.content for message in opened.told if message.role == "user")
    return language_of([turn.question, *said])


def people_of(turn: Turn) -> list[str]:
    """open_ids of whom a name in the reply can mean: those who speak and who are mentioned."""
    mentioned = [m.open_id for m in turn.event.mentions]
    talking = list(turn.heard.conversation.participants) if turn.heard.conversation else []
    known = [turn.event.sender_open_id, turn.context.user_id, *mentioned, *talking]
    return [open_id for open_id in dict.fromkeys(known) if open_id and open_id != turn.bot.open_id]


def told(
    services: Services, turn: Turn, before: Sequence[MessageRecord], spoken: str, message_id: str
) -> dict[str, object] | None:
    """What the chat's conversation is told when a card was delivered as `message_id`."""
    event = turn.event
    in_thread = services.settings.reply_in_thread
    earlier = [one for one in before if one.message_id != message_id]  # as Feishu lists the card
    record = MessageRecord(
        author=turn.bot.name,
        author_id=turn.bot.open_id,
        content=spoken,
        timestamp=int(services.clock() * 1000),
        is_bot=True,
        message_id=message_id,
        root_id=event.root_id or (event.message_id if in_thread else None),
        ours=True,
        quotes="" if event.root_id or in_thread else event.message_id,
    )
    return told_args_of(services, event, turn.heard, earlier, record)
