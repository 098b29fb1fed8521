"""What Feishu's API answers, as frozen data."""

from dataclasses import dataclass
from typing import Any

from bot.feishu.errors import Unintelligible, Unreachable
from bot.feishu.events import milliseconds
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.mention_keys import Mention, parse_mentions
from memory.identity import FeishuPerson


@dataclass(frozen=True, slots=True)
class BotInfo:
    """The bot itself; `open_id` is how mentions name it."""

    open_id: str
    app_name: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message Feishu accepted; `thread_id` and `root_id` are "" outside threads and replies."""

    message_id: str
    chat_id: str
    thread_id: str
    root_id: str
    create_time_ms: int


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A stored message. `content` is as Feishu keeps it: a JSON string, or bare text for recalled
    messages and merged forwards; `sender_type` is user, app, anonymous or unknown. Where Feishu
    tells them (its SDK's model, not its pages): `sender_name`, also of apps, and `position`, the
    number of the message in its chat, else 0."""

    message_id: str
    root_id: str
    parent_id: str
    thread_id: str
    upper_message_id: str
    chat_id: str
    message_type: str
    sender_id: str
    sender_id_type: str
    sender_type: str
    create_time_ms: int
    deleted: bool
    content: str
    mentions: tuple[Mention, ...]
    sender_name: str = ""
    position: int = 0
    edited: bool = False


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Messages of a chat or thread, the oldest first; `next_token` is "" on the last page."""

    messages: tuple[RawMessage, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """`chat_mode` is group, topic or p2p; `group_message_type` is chat or thread.

    `managers` are the open ids of its owner and managers, as far as Feishu names them."""

    chat_id: str
    name: str
    chat_mode: str
    group_message_type: str
    external: bool
    managers: tuple[str, ...] = ()

    @property
    def topics(self) -> bool:
        """Whether it consists of topics (Feishu, "Overview of topics": two kinds of group do)."""
        return has_topics(self.chat_mode, self.group_message_type)


def has_topics(chat_mode: str, group_message_type: str) -> bool:
    return chat_mode in ("topic", "topic_group") or group_message_type == "thread"


def required(data: dict[str, Any], name: str) -> str:
    """The text under `name`. Raises Unreachable: without it the outcome is not known."""
    value = as_text(data.get(name))
    if not value:
        raise Unreachable(f"the answer has no {name}")
    return value


def sent_message(data: dict[str, Any]) -> SentMessage:
    return SentMessage(
        message_id=required(data, "message_id"),
        chat_id=as_text(data.get("chat_id")),
        thread_id=as_text(data.get("thread_id")),
        root_id=as_text(data.get("root_id")),
        create_time_ms=milliseconds(data.get("create_time")),
    )


def raw_message(item: dict[str, Any]) -> RawMessage:
    sender = as_dict(item.get("sender"))
    return RawMessage(
        message_id=as_text(item.get("message_id")),
        root_id=as_text(item.get("root_id")),
        parent_id=as_text(item.get("parent_id")),
        thread_id=as_text(item.get("thread_id")),
        upper_message_id=as_text(item.get("upper_message_id")),
        chat_id=as_text(item.get("chat_id")),
        message_type=as_text(item.get("msg_type")),
        sender_id=as_text(sender.get("id")),
        sender_id_type=as_text(sender.get("id_type")),
        sender_type=as_text(sender.get("sender_type")),
        create_time_ms=milliseconds(item.get("create_time")),
        deleted=item.get("deleted") is True,
        content=as_text(as_dict(item.get("body")).get("content")),
        mentions=parse_mentions(item.get("mentions")),
        sender_name=as_text(sender.get("sender_name")),
        position=_ordinal(item.get("message_position")),
        edited=item.get("updated") is True,
    )


def _ordinal(value: object) -> int:
    """A number from 1 on, written as one or as text; 0 for anything else."""
    digits = str(value)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else 0


def history_page(data: dict[str, Any]) -> HistoryPage:
    """Raises Unintelligible for an answer that goes on and does not say where, or has no list."""
    more, token = data.get("has_more") is True, as_text(data.get("page_token"))
    items = data.get("items")
    if more and not token:
        raise Unintelligible("the answer has more pages and no page_token")
    if not isinstance(items, list) and (more or items is not None):
        raise Unintelligible("the answer has no items")
    return HistoryPage(
        tuple(raw_message(as_dict(item)) for item in as_list(items)), token if more else ""
    )


def chat_info(chat_id: str, data: dict[str, Any]) -> ChatInfo:
    return ChatInfo(
        chat_id=chat_id,
        name=as_text(data.get("name")),
        chat_mode=as_text(data.get("chat_mode")),
        group_message_type=as_text(data.get("group_message_type")),
        external=data.get("external") is True,
        managers=_managers(data),
    )


def _managers(data: dict[str, Any]) -> tuple[str, ...]:
    """Feishu names no owner where a bot is it, and may name one by another kind of id."""
    candidates = (data.get("owner_id"), *as_list(data.get("user_manager_id_list")))
    return tuple(
        dict.fromkeys(open_id for open_id in map(as_text, candidates) if open_id.startswith("ou_"))
    )


def members_of_page(data: dict[str, Any]) -> dict[FeishuPerson, str]:
    """The people of one page of a chat's members, with their names. Raises Unreachable for an
    answer without a list, which would empty the group."""
    if not isinstance(data.get("items"), list):
        raise Unreachable("the answer has no items")
    items = [as_dict(item) for item in as_list(data["items"])]
    people = {
        FeishuPerson(as_text(item.get("tenant_key")), as_text(item.get("member_id"))): as_text(
            item.get("name")
        )
        for item in items
    }
    return {person: name for person, name in people.items() if person.open_id}
