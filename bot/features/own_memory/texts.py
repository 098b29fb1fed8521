"""How facts and notes are shown to whom they are of: whence, since when, who sees them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from bot.text.languages import Language
from memory.kept.items import Changed, Item
from memory.models import Former
from memory.text import one_line

_VALUE_CHARS = 300
_NAME_CHARS = 60

Texts = Mapping[Language, str]

CORRECT: Texts = {"zh": "更正", "en": "Correct"}
DELETE: Texts = {"zh": "删除", "en": "Delete"}
BACK: Texts = {"zh": "上一页", "en": "Previous page"}
MORE: Texts = {"zh": "下一页", "en": "Next page"}
NOTHING_KEPT: Texts = {
    "zh": "我没有记下关于你的任何事实或笔记。",
    "en": "I keep no facts or notes about you.",
}
GONE_ALREADY: Texts = {
    "zh": "这一项已经不在了，什么都没有改动。",
    "en": "That item is not there any more; nothing was changed.",
}
SENT_PRIVATELY: Texts = {
    "zh": "这只给你一个人看，我已在单聊里发给你。",
    "en": "This is for you alone: I have sent it to you in our private chat.",
}
NOT_SENT_PRIVATELY: Texts = {
    "zh": "这只能给你一个人看，但我没法给你发单聊消息。请直接给我发 `/记忆`。",
    "en": "This is for you alone, and I cannot write to you privately. Please send me `/memory` "
    "directly.",
}
IN_PRIVATE: Texts = {
    "zh": "你在群里问我记住了你的什么；只有你能看到这里：",
    "en": "You asked in a group what I remember about you; only you can see this:",
}
CORRECTING: Texts = {
    "zh": "你在群里想更正我记下的一项，只有你能看到这里：",
    "en": "You want to correct something from the list in the group; only you can see this:",
}
ASKED_PRIVATELY: Texts = {
    "zh": "我在单聊里问你新的内容，在那里回复就好，群里没有人会看到。",
    "en": "I have asked you for it in our private chat; answer there, and nobody in the group "
    "sees it.",
}
NOT_NOW: Texts = {
    "zh": "我的记忆现在连不上，什么都没有改动。请稍后再试。",
    "en": "My memory cannot be reached right now; nothing was changed. Please try again later.",
}
KEPT_AS_IT_WAS: Texts = {"zh": "好的，没有改动。", "en": "All right, nothing was changed."}

_INTRO: Texts = {
    "zh": "**事实和笔记**（共 {total} 项，第 {first}–{last} 项）",
    "en": "**Facts and notes** ({first}–{last} of {total})",
}
_ASK_DELETE: Texts = {
    "zh": "要永久删除“{key}”吗？它所出自的消息和重复它的回答也会从我的记忆里消失，无法撤销。",
    "en": "Delete “{key}” for good? The message it came from and my answers that repeat it leave "
    "my memory too; this cannot be undone.",
}
_ASK_CORRECT: Texts = {
    "zh": "“{key}”应该是什么？请直接回复新的内容（回复“取消”则不改）。",
    "en": "What should “{key}” be? Write the new value as your next message (“cancel” leaves it).",
}
_DELETED: Texts = {
    "zh": "已永久删除：{what}。它所出自的消息和重复它的回答也从我的记忆里删除了。",
    "en": "Deleted for good: {what}. The message it came from and my answers that repeated it are "
    "gone from my memory too.",
}
_CORRECTED: Texts = {"zh": "已更正：{key}：{old} → {new}", "en": "Corrected: {key}: {old} → {new}"}
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "colon": "：",
        "user": "长期事实",
        "chat": "本话题的事实",
        "note": "笔记",
        "said_by": "{} 关于你说的",
        "said_about": "你关于 {} 说的",
        "private": "只有你能看到",
        "members": "{} 的成员能看到",
        "shared": "已分享给 {}",
        "a_chat": "那个聊天",
        "group": "群聊",
        "p2p": "单聊",
        "since": "{} 起",
        "before": "之前：{value}（{span}）",
        "until": "至 {}",
    },
    "en": {
        "colon": ": ",
        "user": "lasting fact",
        "chat": "fact of a thread",
        "note": "note",
        "said_by": "said by {} about you",
        "said_about": "said by you about {}",
        "private": "only you can see it",
        "members": "members of {} can see it",
        "shared": "shared with {}",
        "a_chat": "that chat",
        "group": "a group",
        "p2p": "our private chat",
        "since": "since {}",
        "before": "before: {value} ({span})",
        "until": "until {}",
    },
}
_PLAIN = str.maketrans("`[]", "'()")
_CANCELS = frozenset({"cancel", "no", "never mind", "stop", "取消", "不改", "不用", "算了"})


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the items: their open_id, how others are named, and where links lead."""

    open_id: str
    language: Language
    zone: tzinfo
    name: Callable[[str], str]
    applink: str


def applink(feishu_domain: str) -> str:
    """Where links into the app begin. Source: Feishu, AppLink protocol, “Open a chat”."""
    lark = "larksuite" in feishu_domain
    return f"https://applink.{'larksuite.com' if lark else 'feishu.cn'}/client/chat/open"


def listed(items: Sequence[Item], total: int, offset: int, viewer: Viewer) -> str:
    """A page of items, numbered from `offset` + 1."""
    if not items:
        return NOTHING_KEPT[viewer.language]
    intro = _INTRO[viewer.language].format(total=total, first=offset + 1, last=offset + len(items))
    lines = [_entry(number, item, viewer) for number, item in enumerate(items, offset + 1)]
    return "\n\n".join((intro, *lines))


def ask_delete(key: str, language: Language) -> str:
    return _ASK_DELETE[language].format(key=short(key, _NAME_CHARS))


def ask_correct(key: str, language: Language) -> str:
    return _ASK_CORRECT[language].format(key=short(key, _NAME_CHARS))


def deleted(gone: Changed, language: Language) -> str:
    """The receipt: what was deleted."""
    return _DELETED[language].format(what=_named(gone.key, gone.value, language))


def corrected(old: Changed, new: object, language: Language) -> str:
    return _CORRECTED[language].format(
        key=short(old.key, _NAME_CHARS), old=_value(old.value), new=_value(new)
    )


def cancels(text: str) -> bool:
    """Whether the answer to `ask_correct` is that nothing is to be changed."""
    return text.strip().strip(".。!！").lower() in _CANCELS


def short(text: str, limit: int) -> str:
    """`text` on one line, without marks that would open code or a link in the card."""
    line = one_line(text).translate(_PLAIN)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _entry(number: int, item: Item, viewer: Viewer) -> str:
    words = _WORDS[viewer.language]
    since = words["since"].format(_when(item.at, viewer))
    parts = (_kind(item, viewer), since, _place(item, viewer), _seen_by(item, words))
    before = f"\n{_before(item.before, viewer)}" if item.before else ""
    return (
        f"**{number}.** {_named(item.key, item.value, viewer.language)}\n"
        f"{' · '.join(part for part in parts if part)}{before}"
    )


def _before(former: Former, viewer: Viewer) -> str:
    words = _WORDS[viewer.language]
    until = _when(former.until, viewer)
    span = (
        f"{_when(former.since, viewer)} – {until}" if former.since else words["until"].format(until)
    )
    return words["before"].format(value=_value(former.value), span=span)


def _named(key: str, value: Any, language: Language) -> str:
    text = _value(value)
    name = short(key, _NAME_CHARS)
    return f"{name}{_WORDS[language]['colon']}{text}" if text else name


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return short(text, _VALUE_CHARS)


def _kind(item: Item, viewer: Viewer) -> str:
    words = _WORDS[viewer.language]
    if item.kind == "note":
        return words["note"]
    if item.actor_id != viewer.open_id:
        return words["said_by"].format(short(viewer.name(item.actor_id), _NAME_CHARS))
    if item.user_id != viewer.open_id:
        return words["said_about"].format(short(viewer.name(item.user_id), _NAME_CHARS))
    return words[item.scope]


def _when(at: str, viewer: Viewer) -> str:
    return f"{datetime.fromisoformat(at).astimezone(viewer.zone):%Y-%m-%d %H:%M}"


def _place(item: Item, viewer: Viewer) -> str:
    """A link to the chat in which it was told: Feishu has none that can be made for a message."""
    words = _WORDS[viewer.language]
    name = short(item.chat_name or words.get(item.chat_type or "", words["a_chat"]), _NAME_CHARS)
    return f"[{name}]({viewer.applink}?openChatId={item.chat_id})" if item.chat_id else name


def _seen_by(item: Item, words: Mapping[str, str]) -> str:
    group = short(item.chat_name or words["a_chat"], _NAME_CHARS)
    seen = words["private"] if item.chat_type == "p2p" else words["members"].format(group)
    if not item.shared_chat_id:
        return seen
    shared = short(item.shared_chat_name or words["a_chat"], _NAME_CHARS)
    return f"{seen} · {words['shared'].format(shared)}"
