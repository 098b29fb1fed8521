"""What a turn is opened for: who asks what, where. Pure.

A message is such a request as it stands; a press, a reaction and a timer make one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.feishu.events import MessageEvent
from bot.feishu.fields import Attachment, Mention
from memory.models import MESSAGE_ORIGIN, Origin
from memory.scope import ChatType


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """What came with the message in which somebody wrote the question; as in a `MessageEvent`."""

    message_id: str
    message_type: str
    parent_id: str
    attachments: tuple[Attachment, ...] = ()
    template: str = ""
    mentions_all: bool = False


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A question and what it came from. What a `MessageEvent` has too is as there.

    `id` is the message's, or that of the `origin`. `threaded`: it is said in the thread of
    `root_id` although that has no `thread_id`. `mentions` are those whom it is about. `reply_to`:
    the message that the answer hangs under, "" for the question's own; `in_place`: a card of the
    bot's, whose place the answer takes. `written` is None where nobody wrote the question here.
    `resumed`: it waited for a permission, and continues without a press. `written_ms`: when its
    words were written, where that was before `create_time_ms`; 0: it was then.
    """

    id: str
    origin: Origin
    sender_open_id: str
    tenant_key: str
    chat_id: str
    chat_type: str
    text: str
    create_time_ms: int
    sender_type: str = "user"
    sender_tenant: str = ""
    root_id: str = ""
    thread_id: str = ""
    threaded: bool = False
    mentions: tuple[Mention, ...] = ()
    reply_to: str = ""
    in_place: bool = False
    resumed: bool = False
    written_ms: int = 0
    written: WrittenQuestion | None = None

    @property
    def words_ms(self) -> int:
        """Since the epoch: from when its “tomorrow” counts."""
        return self.written_ms or self.create_time_ms

    @classmethod
    def of(cls, event: MessageEvent) -> TurnRequest:
        """The request that a message is."""
        return cls(
            id=event.message_id,
            origin=MESSAGE_ORIGIN,
            sender_open_id=event.sender_open_id,
            tenant_key=event.tenant_key,
            chat_id=event.chat_id,
            chat_type=event.chat_type,
            text=event.text,
            create_time_ms=event.create_time_ms,
            sender_type=event.sender_type,
            sender_tenant=event.sender_tenant,
            root_id=event.root_id,
            thread_id=event.thread_id,
            mentions=event.mentions,
            written=WrittenQuestion(
                event.message_id,
                event.message_type,
                event.parent_id,
                event.attachments,
                event.template,
                event.mentions_all,
            ),
        )

    @property
    def message_id(self) -> str:
        """The message in which it was written; the turn's id where there is none."""
        return self.written.message_id if self.written else self.id

    @property
    def hangs_under(self) -> str:
        """The message under which the answer hangs; "" where nobody wrote or pressed any."""
        return self.reply_to or (self.written.message_id if self.written else "")

    @property
    def is_newly_asked(self) -> bool:
        """Whether somebody wrote the question or chose it in the bot's menu; else they pressed it
        under an answer."""
        return self.written is not None or not self.hangs_under

    @property
    def message_type(self) -> str:
        return self.written.message_type if self.written else "text"

    @property
    def parent_id(self) -> str:
        return self.written.parent_id if self.written else ""

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return self.written.attachments if self.written else ()

    @property
    def template(self) -> str:
        return self.written.template if self.written else self.text

    @property
    def mentions_all(self) -> bool:
        return bool(self.written and self.written.mentions_all)

    @property
    def audience(self) -> ChatType:
        """Who reads what is said there: a topic group is a group, and so is what is not known."""
        return "p2p" if self.chat_type == "p2p" else "group"

    @property
    def in_thread(self) -> bool:
        return self.threaded or bool(self.thread_id)

    @property
    def root_of_thread(self) -> str:
        """The message its thread hangs under; "" outside of threads and for a topic's first."""
        return self.root_id if self.in_thread else ""

    @property
    def quotes(self) -> str:
        """The message that its author picked to answer. In a thread every message has its root as
        parent (Feishu, "Message management overview", parent_id)."""
        return "" if self.in_thread else self.parent_id

    def is_for(self, bot_open_id: str) -> bool:
        """Whether it is put to the bot; @all does not count."""
        if self.written is None:
            return True
        return bool(bot_open_id) and any(one.open_id == bot_open_id for one in self.mentions)
