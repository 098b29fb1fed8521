"""The bot's first words in a chat, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.features.help.capabilities import MENTIONS_ONLY, SetUp
from bot.listening.chat_rules import Mode, RuleLanguage
from bot.text.languages import Language
from memory.text import has_han

_Texts = Mapping[Language, str]

_GROUP: _Texts = {
    "zh": """大家好，我是 {bot}。@我 就能提问、让我记住事情、建笔记，例如：\
`@{bot} 记住我们的发布日是 3 月 3 日`

- **什么时候说话**：{speaks}
- **用谁的记忆**：{whose}
- **谁能看到**：{seen} 单聊里对我说的，只有你自己看得到。
- `@{bot} /帮助`：我能做的一切；`@{bot} /记忆`：查看、更正或删除我记住的你的内容""",
    "en": """Hello, I am {bot}. Mention me to ask, to have something remembered, to make notes: \
`@{bot} remember that our launch is on 3 March`

- **When I speak**: {speaks}
- **Whose memory I keep**: {whose}
- **Who can see it**: {seen} What you tell me in our private chat only you can see.
- `@{bot} /help`: all that I can do; `@{bot} /memory`: see, correct or delete what I keep about \
you""",
}
_P2P: _Texts = {
    "zh": """你好，我是 {bot}。直接写给我就能提问、让我记住事情、建笔记，例如：\
`记住我们的发布日是 3 月 3 日`

- **用谁的记忆**：你自己的；{p2p}
- **谁能看到**：你在这里对我说的，只有你自己看得到，我不会在群里说出来。
- `/帮助`：我能做的一切；`/记忆`：查看、更正或删除我记住的你的内容""",
    "en": """Hello, I am {bot}. Write to me to ask, to have something remembered, to make notes: \
`remember that our launch is on 3 March`

- **Whose memory I keep**: yours; {p2p}
- **Who can see it**: what you tell me here only you can see; I never tell it in a group.
- `/help`: all that I can do; `/memory`: see, correct or delete what I keep about you""",
}
_SPEAKS: Mapping[Language, Mapping[Mode, str]] = {
    "zh": {
        "mention": "只在被 @ 或被回复时。",
        "threads": "被 @ 或被回复时，以及有人在我自己的话题里接着说时。",
        "follow": "被 @ 或被回复时，以及有人接着我刚才的回答往下说时。",
        "all": "每一条不是对别人说的消息，我都回答。",
    },
    "en": {
        "mention": "only when I am mentioned or replied to.",
        "threads": "when I am mentioned or replied to, and when somebody goes on in my own "
        "threads.",
        "follow": "when I am mentioned or replied to, and when somebody goes on with what I just "
        "answered.",
        "all": "I answer every message that is not for somebody else.",
    },
}
_WHOSE: Mapping[bool, _Texts] = {
    True: {
        "zh": "提问的人自己的；@我 再 @某人，用那个人在这个话题里的。",
        "en": "that of whoever asks; mention me and a person to use what that person said to me "
        "in this thread.",
    },
    False: {"zh": "每个人只用自己的。", "en": "everybody's own, and nobody else's."},
}
_SEEN: Mapping[bool, _Texts] = {
    True: {
        "zh": "在这个群里对我说的，本群成员看得到，别处的人看不到。",
        "en": "what is said to me in this group its members can see, and nobody elsewhere.",
    },
    False: {
        "zh": "在这个群里对我说的，我只用来回答说的人自己。",
        "en": "what you say to me in this group I use in answers to you only.",
    },
}
_P2P_SHARED: Mapping[bool, _Texts] = {
    True: {
        "zh": "也包括我们共同的群里对我说过的。",
        "en": "what was said to me in the groups we share is part of it.",
    },
    False: {"zh": "别人对我说的不在其中。", "en": "what others tell me is no part of it."},
}


def welcome_text(bot: str, here: SetUp, language: Language) -> str:
    """What it can do, whose memory it keeps, who can see it. `bot` is a name, safe in Markdown."""
    text = (_GROUP if here.in_group else _P2P)[language].format(
        bot=bot,
        speaks=_SPEAKS[language][here.mode if here.follows else "mention"],
        whose=_WHOSE[here.shares][language],
        seen=_SEEN[here.shares][language],
        p2p=_P2P_SHARED[here.shares][language],
    )
    return text if here.hears else f"{text}\n\n{MENTIONS_ONLY.said(language)}"


def languages_of(rule: RuleLanguage, chat_name: str, *, lark: bool) -> tuple[Language, ...]:
    """In which language people are met: the chat's, else that of its name; both where nothing
    tells, but for Lark, which is used outside of China."""
    if rule != "auto":
        return (rule,)
    if has_han(chat_name):
        return ("zh",)
    return ("en",) if lark else ("zh", "en")
