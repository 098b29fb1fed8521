"""What was said in a chat lately: the messages, and how a prompt shows them. Pure.

All times are milliseconds since the epoch, as in Feishu's events.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memory.foreign_text import speaker, spoken

MAX_MESSAGES = 200
CLIP_CHARACTERS = 2000
KEPT_CHARACTERS = 2 * CLIP_CHARACTERS  # of a message; answers keep all of theirs elsewhere
OURS = "[you]"


@dataclass(frozen=True)
class MessageRecord:
    """A message as the conversation keeps it.

    `content` is plain text with `@Name`, not card markdown. `ours` says that this bot wrote it:
    Feishu's list names the app, not the bot's open_id. `root_id` is the thread's root, if in a
    thread; `answered` that the bot answered the message. `topic` is the one of the main chat that
    it belongs to (`bot.listening.topics`), if known; `quotes` the message it quotes outside
    threads, known when it is heard.
    """

    author: str
    author_id: str
    content: str
    timestamp: int
    is_bot: bool
    message_id: str = ""
    root_id: str | None = None
    ours: bool = False
    answered: bool = False
    topic: int | None = None
    quotes: str = ""

    def is_in(self, root_id: str | None) -> bool:
        """Whether it belongs to that thread, its root included; everything does to the chat."""
        return root_id is None or root_id in (self.root_id, self.message_id)


@dataclass(frozen=True)
class ChannelConversation:
    """The active conversation of a chat, its messages oldest first.

    `quiet` keeps the bot to explicit triggers; it belongs to the chat and outlives the
    conversation. `is_listed`: the messages come from Feishu's list, so the memory has not all of
    them.
    """

    channel_id: str
    started_at: int
    last_activity: int
    messages: tuple[MessageRecord, ...] = ()
    quiet: bool = False
    is_listed: bool = False

    @cached_property
    def participants(self) -> dict[str, str]:
        """open_id → name of everybody who wrote."""
        return {message.author_id: message.author for message in self.messages}

    @property
    def last_bot_at(self) -> int | None:
        """When this bot spoke last."""
        return max((message.timestamp for message in self.messages if message.ours), default=None)

    @property
    def llm_history(self) -> tuple[dict[str, str], ...]:
        """The messages as a model takes them: role and content, people labelled."""
        return tuple(
            {"role": "assistant", "content": message.content}
            if message.ours
            else {"role": "user", "content": labelled(message)}
            for message in self.messages
        )

    def with_message(
        self, record: MessageRecord, *, keep: int = MAX_MESSAGES
    ) -> "ChannelConversation":
        """The conversation after `record`; unchanged if its message_id is already there.

        Messages stand in the order of their timestamps, the newest `keep` of them. Activity never
        goes back, however late a message is delivered.
        """
        if record.message_id and any(m.message_id == record.message_id for m in self.messages):
            return self
        ordered_records = sorted((*self.messages, record), key=lambda message: message.timestamp)
        return replace(
            self,
            messages=tuple(ordered_records[-keep:]),
            last_activity=max(self.last_activity, record.timestamp),
        )

    def without_message(self, message_id: str) -> "ChannelConversation":
        """The conversation after a recall."""
        kept_messages = tuple(
            message for message in self.messages if message.message_id != message_id
        )
        return replace(self, messages=kept_messages)


def labelled(message: MessageRecord, author: str | None = None, *, mark: str = OURS) -> str:
    """`author: text`; a line of this bot bears `mark`, which no name can imitate."""
    name = speaker(message.author if author is None else author)
    text = message.content.strip()
    clipped_text = text if len(text) <= CLIP_CHARACTERS else f"{text[:CLIP_CHARACTERS]}…"
    return spoken(f"{name} {mark}" if message.ours else name, clipped_text)


def transcript(
    messages: Iterable[MessageRecord],
    *,
    root_id: str | None = None,
    budget_tokens: int,
    estimate: Callable[[str], int],
) -> str:
    """`author: text` line by line, oldest first; the newest messages that fit the budget.

    With `root_id` only that thread. It is what people wrote, for the prompt to show as data.
    """
    ours = [message for message in messages if message.is_in(root_id)]
    return "\n".join(newest_lines(ours, budget_tokens=budget_tokens, estimate=estimate))


def newest_lines(
    messages: Sequence[MessageRecord],
    *,
    budget_tokens: int,
    estimate: Callable[[str], int],
    name: Callable[[MessageRecord], str] | None = None,
) -> list[str]:
    """The lines of the newest messages that fit the budget, oldest first. `name`: what stands in
    front of the words, else the author's name."""
    lines: list[str] = []
    left = budget_tokens
    for message in reversed(messages):
        line = labelled(message, name(message) if name else None)
        left -= estimate(line)
        if left < 0:
            break
        lines.append(line)
    return lines[::-1]
