"""The one list of what a Feishu app must be granted: scopes, events, callbacks. Pure.

Set-up asks for it, the doctor compares it with what is there, and a test holds the guides in step.
Sources: the pages of the APIs and events on open.feishu.cn (“Required scopes”: any one of those
listed is enough), “Query tenant authorization status”, “Create an app in one click”.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from bot.feishu.user_scopes import EVERYTHING
from bot.text.languages import Sentence
from bot.text.slash_commands import CommandName

# required: nothing goes without; wanted: people miss something; optional: an admin may decline it.
Level = Literal["required", "wanted", "optional"]
Kind = Literal["event", "callback"]


AnyOf = tuple[str, ...]  # scopes, each of which is enough

GROUP_MESSAGES = "im:message.group_msg"
SPEECH = "speech_to_text:speech"
_GRANTED = 1

_SEND: AnyOf = ("im:message", "im:message:send_as_bot", "im:message:send")
_CHANGE: AnyOf = ("im:message", "im:message:send_as_bot", "im:message:update")
_RECALL: AnyOf = ("im:message", "im:message:recall", "im:message:send_as_bot")
_READ: AnyOf = ("im:message", "im:message:readonly")
_HISTORY: AnyOf = (*_READ, "im:message.history:readonly")
_HEAR_GROUPS: AnyOf = (GROUP_MESSAGES, "im:message.group_msg:readonly")
_HEAR_BOTS: AnyOf = ("im:message.group_at_msg.include_bot:readonly",)
_HEAR_MENTIONS: AnyOf = (
    "im:message.group_at_msg:readonly",
    "im:message.group_at_msg",
    *_HEAR_BOTS,
    *_HEAR_GROUPS,
)
_HEAR_MEMBERS: AnyOf = ("im:chat", "im:chat.members:read", "im:chat:readonly")
_READ_MEMBERS: AnyOf = (
    "im:chat",
    "im:chat:readonly",
    "im:chat.members:read",
    "im:chat.group_info:readonly",
)
_TAKE_BACK_COMMENT: AnyOf = (
    "docs:doc",
    "docs:doc:readonly",
    "docs:document.comment:delete",
    "docs:document.comment:write_only",
    "drive:drive",
    "drive:drive:readonly",
    "sheets:spreadsheet",
    "sheets:spreadsheet:readonly",
)
_COMMENT: AnyOf = (
    "docs:doc",
    "docs:doc:readonly",
    "docs:document.comment:create",
    "drive:drive",
    "drive:drive:readonly",
    "sheets:spreadsheet",
    "sheets:spreadsheet:readonly",
)


@dataclass(frozen=True, slots=True)
class Scope:
    """`purpose` is what the bot does with it. `opens`: for each kind of call and event that it is
    asked for, the scopes of which Feishu wants one. `without`: what people miss where it was
    declined, and what it would bring."""

    name: str
    level: Level
    purpose: Sentence
    opens: tuple[AnyOf, ...]
    without: Sentence | None = None

    def is_covered(self, granted_scopes: Collection[str]) -> bool:
        """Whether everything that it is asked for works with `granted_scopes`."""
        return all(any(one in granted_scopes for one in any_of) for any_of in self.opens)


@dataclass(frozen=True, slots=True)
class Subscription:
    """An event, or a callback: the console has a tab for each."""

    name: str
    kind: Kind
    level: Level
    purpose: Sentence


_WITHOUT_GROUP_MESSAGES = Sentence(
    "in groups the bot only sees mentions; with this scope it also reads quoted messages and "
    "earlier discussion, answers follow-ups without a mention, and writes complete digests",
    "机器人在群里只能看到 @ 它的消息；开通后，它还能读取被引用的消息和之前的讨论，不用 @ 也能"
    "回答追问，摘要也会完整",
)

SCOPES: tuple[Scope, ...] = (
    Scope(
        "im:message.p2p_msg:readonly",
        "required",
        Sentence("messages to the bot in private chats", "接收单聊中发给机器人的消息"),
        (("im:message.p2p_msg:readonly", "im:message.p2p_msg"),),
    ),
    Scope(
        "im:message.group_at_msg:readonly",
        "required",
        Sentence("mentions of the bot in groups", "接收群聊中 @机器人 的消息"),
        (_HEAR_MENTIONS,),
    ),
    Scope(
        "im:message:send_as_bot",
        "required",
        Sentence("sending and replying", "发送和回复消息"),
        (_SEND, _CHANGE, _RECALL),
    ),
    Scope(
        "im:message:readonly",
        "required",
        Sentence(
            "reading quoted messages (in groups with im:message.group_msg) and files",
            "读取被引用的消息（群里还需要 im:message.group_msg）和文件",
        ),
        (_READ, _HISTORY),
    ),
    Scope(
        "contact:user.basic_profile:readonly",
        "wanted",
        Sentence("names of people", "显示成员的姓名"),
        (("contact:user.basic_profile:readonly",),),
    ),
    Scope(
        "cardkit:card:write",
        "wanted",
        Sentence("streaming cards", "流式卡片"),
        (("cardkit:card:write",),),
    ),
    Scope(
        "im:message.reactions:write_only",
        "wanted",
        Sentence("the “working” reaction", "“处理中”表情回复"),
        (("im:message", "im:message.reactions:write_only"),),
    ),
    Scope(
        "im:message.reactions:read",
        "wanted",
        Sentence("seeing reactions to its answers", "接收对回答的表情回复"),
        (("im:message.reactions:read", "im:message:readonly"),),
    ),
    Scope(
        "im:chat:readonly",
        "wanted",
        Sentence("names and changes of groups", "群组的名称和变更"),
        (("im:chat", "im:chat:read", "im:chat:readonly"),),
    ),
    Scope(
        "im:chat.members:read",
        "wanted",
        Sentence("who is a member of a group", "群成员名单"),
        (_READ_MEMBERS, _HEAR_MEMBERS),
    ),
    Scope(
        "im:chat.members:bot_access",
        "wanted",
        Sentence("being added to and removed from groups", "机器人进群、退群"),
        (("im:chat", "im:chat.members:bot_access", "im:chat:readonly"),),
    ),
    Scope(
        "im:chat.access_event.bot_p2p_chat:read",
        "wanted",
        Sentence("greeting people who open the private chat", "用户打开单聊时打招呼"),
        (("im:chat.access_event.bot_p2p_chat:read",),),
    ),
    Scope(
        "im:resource",
        "wanted",
        Sentence("pictures and files in messages, both ways", "收发消息中的图片和文件"),
        (("im:resource", "im:resource:upload"),),
    ),
    Scope(
        GROUP_MESSAGES,
        "optional",
        Sentence(
            "reading and following what is said in groups (needs review)",
            "读取和跟进群里的讨论（需审核）",
        ),
        ((GROUP_MESSAGES,), _HEAR_GROUPS),
        _WITHOUT_GROUP_MESSAGES,
    ),
    Scope(
        SPEECH,
        "optional",
        Sentence(
            "listening to voice messages (not in Feishu's free plan)",
            "识别语音消息（免费版不支持）",
        ),
        ((SPEECH,),),
        Sentence(
            "the bot can't listen to voice messages and says so",
            "机器人听不了语音消息，并会说明",
        ),
    ),
    Scope(
        "auth:user_access_token:read",
        "optional",
        Sentence("hearing that somebody ended their connection", "接收成员取消授权的事件"),
        (("auth:user_access_token:read",),),
    ),
    Scope(
        "docs:document.comment:read",
        "optional",
        Sentence(
            "hearing and reading comments in documents that mention it",
            "接收和读取文档里 @它 的评论",
        ),
        (
            ("docs:document.comment:read",),
            ("docs:document.comment:read", "drive:drive", "drive:drive:readonly"),
        ),
    ),
    Scope(
        "docs:document.comment:create",
        "optional",
        Sentence("answering comments in documents", "回复文档里的评论"),
        (_COMMENT,),
    ),
    Scope(
        "docs:document.comment:delete",
        "optional",
        Sentence("taking back its comments in documents", "撤回它在文档里的评论"),
        (_TAKE_BACK_COMMENT,),
    ),
    Scope(
        "docs:document.content:read",
        "optional",
        Sentence(
            "reading the document whose comment mentions it",
            "读取评论所在的文档",
        ),
        (("docs:document.content:read",),),
    ),
    Scope(
        "docx:document:readonly",
        "optional",
        Sentence("the titles of such documents", "读取这些文档的标题"),
        (("docx:document", "docx:document:readonly"),),
    ),
    Scope(
        "im:message.group_at_msg.include_bot:readonly",
        "optional",
        Sentence("answering other bots that mention it", "回复 @它 的其他机器人"),
        (_HEAR_BOTS,),
    ),
)

SUBSCRIPTIONS: tuple[Subscription, ...] = (
    Subscription(
        "im.message.receive_v1", "event", "required", Sentence("Message received", "接收消息")
    ),
    Subscription(
        "im.message.recalled_v1", "event", "wanted", Sentence("Message recalled", "撤回消息")
    ),
    Subscription(
        "im.message.reaction.created_v1",
        "event",
        "wanted",
        Sentence("Reaction added to message", "新增消息表情回复"),
    ),
    Subscription(
        "im.message.reaction.deleted_v1",
        "event",
        "wanted",
        Sentence("Reaction deleted from message", "删除消息表情回复"),
    ),
    Subscription(
        "im.chat.member.bot.added_v1",
        "event",
        "wanted",
        Sentence("Bot added to group", "机器人进群"),
    ),
    Subscription(
        "im.chat.member.bot.deleted_v1",
        "event",
        "wanted",
        Sentence("Bot removed from group", "机器人被移出群"),
    ),
    Subscription(
        "im.chat.member.user.added_v1",
        "event",
        "wanted",
        Sentence("User added to group", "用户进群"),
    ),
    Subscription(
        "im.chat.member.user.deleted_v1",
        "event",
        "wanted",
        Sentence("User removed from group", "用户出群"),
    ),
    Subscription(
        "im.chat.member.user.withdrawn_v1",
        "event",
        "wanted",
        Sentence("Adding user to group cancelled", "撤销拉用户进群"),
    ),
    Subscription(
        "im.chat.access_event.bot_p2p_chat_entered_v1",
        "event",
        "wanted",
        Sentence("User enters the chat with the bot", "用户进入与机器人的会话"),
    ),
    Subscription(
        "im.chat.updated_v1",
        "event",
        "wanted",
        Sentence("Group settings changed", "群配置修改"),
    ),
    Subscription(
        "auth.user_access_token.revoked_v4",
        "event",
        "optional",
        Sentence("User access token revoked", "撤销用户授权事件"),
    ),
    Subscription(
        "application.bot.menu_v6",
        "event",
        "wanted",
        Sentence("Bot menu event", "机器人自定义菜单事件"),
    ),
    Subscription(
        "drive.notice.comment_add_v1",
        "event",
        "optional",
        Sentence("Comments and replies in documents", "添加评论、回复通知事件"),
    ),
    Subscription("im.chat.disbanded_v1", "event", "wanted", Sentence("Group disbanded", "群解散")),
    Subscription(
        "card.action.trigger",
        "callback",
        "required",
        Sentence("Card action", "卡片回传交互"),
    ),
)


@dataclass(frozen=True, slots=True)
class MenuItem:
    """An item of the menu in the bot's private chats; its event key is the command it starts."""

    key: CommandName
    name: Sentence


MENU: tuple[MenuItem, ...] = (
    MenuItem(CommandName.HELP, Sentence("Help", "帮助")),
    MenuItem(CommandName.MEMORY, Sentence("What you remember", "我的记忆")),
    MenuItem(CommandName.SETTINGS, Sentence("Settings", "设置")),
    MenuItem(CommandName.QUIET, Sentence("Quiet", "安静")),
    MenuItem(CommandName.CONNECT, Sentence("Connect my account", "连接账号")),
)

MESSAGE = SUBSCRIPTIONS[0]
CLICK = SUBSCRIPTIONS[-1]


def scope_names(*, optional: bool = True) -> list[str]:
    """The names, with those that an admin may decline unless told otherwise."""
    return [scope.name for scope in SCOPES if optional or scope.level != "optional"]


def subscription_names(kind: Kind, *, optional: bool = True) -> list[str]:
    """The events, or the callbacks; with those that an admin may decline unless told otherwise."""
    subscriptions = (one for one in SUBSCRIPTIONS if one.kind == kind)
    return [one.name for one in subscriptions if optional or one.level != "optional"]


def granted_names(rows: Iterable[Any]) -> frozenset[str]:
    """The scopes granted to the app itself, as “Query tenant authorization status” lists them.
    Those of type `user` work for people's tokens only."""
    return frozenset(
        str(one.get("scope_name"))
        for one in rows
        if isinstance(one, dict)
        and one.get("grant_status") == _GRANTED
        and one.get("scope_type") != "user"
    )


def missing_scopes(granted_scopes: Collection[str]) -> list[Scope]:
    """What is neither granted nor included in what is, in the order of the list."""
    return [scope for scope in SCOPES if not scope.is_covered(granted_scopes)]


def included_scopes(granted_scopes: Collection[str]) -> list[Scope]:
    """What is not granted by name, but included in what is."""
    return [
        one for one in SCOPES if one.name not in granted_scopes and one.is_covered(granted_scopes)
    ]


def registration_addons(*, optional: bool = True) -> dict[str, Any]:
    """What `register_app` asks for. Without the platform's preset, which is far more than needed
    (source: Feishu, “Create an app in one click”: addons.preset)."""
    return {
        "preset": False,
        "scopes": _scopes_of_both(optional=optional),
        "events": {"items": {"tenant": subscription_names("event", optional=optional)}},
        "callbacks": {"items": subscription_names("callback")},
    }


def scopes_json(*, optional: bool = True) -> str:
    """What the console takes under Permissions & Scopes, Batch import."""
    return json.dumps({"scopes": _scopes_of_both(optional=optional)}, indent=2)


def _scopes_of_both(*, optional: bool) -> dict[str, list[str]]:
    """The app's own, and those that people can grant it (`/connect`)."""
    user = list(EVERYTHING) if optional else []
    return {"tenant": scope_names(optional=optional), "user": user}


def console_url(domain: str, app_id: str, page: str = "") -> str:
    """A page of the app in the developer console; "" is its first. `page` such as `auth`, `event`,
    `bot`, `version`, `baseinfo`."""
    return f"{domain}/app/{app_id}" + (f"/{page}" if page else "")


def request_url(domain: str, app_id: str, scopes: Iterable[str]) -> str:
    """The page that requests these scopes for the app. The form is that of Feishu's own refusals
    (error 99991672)."""
    query = {"q": ",".join(scopes), "op_from": "openapi", "token_type": "tenant"}
    return f"{console_url(domain, app_id, 'auth')}?{urlencode(query, safe=':,')}"
