"""What can be switched while the sandbox runs: the platform's strictness, and the app's scopes.

One field of `Switches` is one switch: its default, and its sentence in both languages. The page
and `/sandbox/api/switches` list it from here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sandbox.world.scopes import SCOPES


def switch(en: str, zh: str, *, on: bool = False) -> Any:
    """A field of `Switches`."""
    return field(default=on, metadata={"en": en, "zh": zh})


@dataclass
class Switches:
    """How the platform behaves, apart from scopes. Not thread-safe; the world's lock guards it."""

    rate_limits: bool = switch(
        "Refuse calls that are too fast (50 a second for each API, 5 a second for each chat)",
        "拒绝过快的调用（每个接口每秒 50 次，每个群每秒 5 次）",
        on=True,
    )
    minute_limits: bool = switch(
        "Refuse more than 1,000 calls a minute of one API",
        "拒绝每分钟超过 1000 次的同一接口调用",
        on=True,
    )
    lenient_get: bool = switch(
        "Let the app read single group messages without im:message.group_msg, as some apps report",
        "没有 im:message.group_msg 也能读取单条群消息（有应用见过这种情况）",
    )
    tight_mentions: bool = switch(
        "Leave no space after a mention, as when somebody deletes it",
        "@ 之后不留空格（如同有人删掉了空格）",
    )
    secret_chats: bool = switch(
        "Treat groups as confidential: no history, no files (231203, 234038)",
        "群开启保密模式：不能读取历史消息和文件（231203、234038）",
    )
    history_hidden: bool = switch(
        "Newcomers see no earlier messages: the bot reads no threads older than itself (230073)",
        "新成员不可查看历史消息：机器人进群之前的话题不能读取（230073）",
    )
    message_positions: bool = switch(
        "Tell the number of a message in its chat (the SDK's model has it, the documents do not)",
        "消息带有在会话中的序号（SDK 的模型里有，文档里没有）",
    )
    topic_thread_ids: bool = switch(
        "Name the thread of messages in topic groups (some apps report root_id alone)",
        "话题群的消息带有 thread_id（有应用见过只带 root_id 的）",
        on=True,
    )
    all_by_owner: bool = switch(
        "Let only the owner and administrators of a group mention everybody (11235)",
        "仅群主和群管理员可 @所有人（11235）",
    )
    viewers_online: bool = switch(
        "Keep everybody's client online (a card for one person is never seen by who is offline)",
        "所有人的客户端都在线（离线的人看不到仅自己可见的卡片）",
        on=True,
    )


def listed(switches: Switches, granted: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Every switch with its sentence and whether it is on, for the page."""
    scopes = [
        {"name": name, "en": en, "zh": zh, "on": name in granted}
        for name, (en, zh) in SCOPES.items()
    ]
    platform = [
        {"name": one.name, **one.metadata, "on": getattr(switches, one.name)}
        for one in fields(Switches)
    ]
    return {"scopes": scopes, "platform": platform}


def turn(switches: Switches, granted: set[str], wanted: Mapping[str, Any]) -> None:
    """Turn the named switches on or off; a scope is granted or withheld. Raises ValueError."""
    names = {one.name for one in fields(Switches)}
    if unknown := wanted.keys() - names - SCOPES.keys():
        raise ValueError(f"unknown switches {sorted(unknown)}")
    for name, value in wanted.items():
        if name in names:
            setattr(switches, name, bool(value))
        elif value:
            granted.add(name)
        else:
            granted.discard(name)
