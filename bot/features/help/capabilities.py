"""What the bot can do where it is asked: the one list of which `/help` is made. Pure.

A capability is a line, or two in both languages, and when it is there. What stands in “…” is an
example that works as it is written, one after the other; a test says each of them to the bot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.listening.chat_rules import ChatRules, Mode, rules_of
from bot.settings import Settings
from bot.text.languages import Language, Sentence
from memory.scope import ChatType

Part = Literal["saying", "command"]


@dataclass(frozen=True, slots=True)
class SetUp:
    """What makes a difference to what the bot can do. `shares`: what is said in a group is for all
    of its members (MEMORY_SHARING=chat). `hears`: what is said in a group reaches the bot without a
    mention."""

    chat_type: ChatType
    mode: Mode = "follow"
    shares: bool = True
    proactive: bool = False
    offline: bool = False
    hears: bool = True

    @property
    def in_group(self) -> bool:
        return self.chat_type != "p2p"

    @property
    def follows(self) -> bool:
        """Whether it speaks without being addressed."""
        listens = self.shares and self.mode != "mention"
        return self.in_group and self.hears and (listens or self.mode == "all")


def set_up(
    settings: Settings, chat_type: ChatType, rules: Mapping[str, Any], *, hears: bool = True
) -> SetUp:
    """What it is here; `rules` is a row of `get_chat_rules`."""
    usual = ChatRules(settings.chat_mode, settings.chat_language)
    return SetUp(
        chat_type,
        rules_of(rules, usual).mode,
        shares=settings.sharing == "chat",
        proactive=settings.proactive,
        offline=not settings.openai_api_key,
        hears=hears,
    )


MENTIONS_ONLY = Sentence(
    en="ℹ️ Without the permission `im:message.group_msg` I only see group messages that mention me; "
    "with it I also read quoted messages and earlier discussion, follow up without a mention, and "
    "give complete digests.",
    zh="ℹ️ 应用没有 `im:message.group_msg` 权限，我在群里只看得到 @我 的消息；开通后，我还能读取"
    "被引用的消息和之前的讨论，无需 @ 即可接着回答，摘要也会完整。",
)


@dataclass(frozen=True, slots=True)
class Capability:
    """One line of the help, and whether the bot can do that."""

    part: Part
    line: Sentence
    is_there: Callable[[SetUp], bool] = lambda _: True


CAPABILITIES: tuple[Capability, ...] = (
    Capability(
        "saying",
        Sentence(
            en="**Ask**: mention me with your question. I remember what was said to me in this "
            "thread.",
            zh="**提问**：@我 再写问题。这个话题里对我说过的话，我都记得。",
        ),
        lambda here: here.in_group,
    ),
    Capability(
        "saying",
        Sentence(
            en="**Ask**: just write. I remember what you have told me here, and what was said to "
            "me in the groups we share.",
            zh="**提问**：直接写就行。你在这里对我说过的，以及我们共同的群里对我说过的，我都记得。",
        ),
        lambda here: not here.in_group and here.shares,
    ),
    Capability(
        "saying",
        Sentence(
            en="**Ask**: just write. I remember what you have told me.",
            zh="**提问**：直接写就行。你对我说过的话，我都记得。",
        ),
        lambda here: not here.in_group and not here.shares,
    ),
    Capability(
        "saying",
        Sentence(
            en="**For somebody else**: mention me and that person, and I answer with what they "
            "said to me in this thread.",
            zh="**替别人问**：@我 再 @那个人，我按那个人在本话题里说过的来回答。",
        ),
        lambda here: here.in_group and here.shares,
    ),
    Capability(
        "saying",
        Sentence(
            en="**Facts**: “remember that our launch is on 3 March”, then “when is our launch?”; "
            "“forget our launch” in that thread deletes it for good.",
            zh="**事实**：“记住我们的发布日是 3 月 3 日”，之后问“发布日是哪天？”；"
            "在那个话题里说“忘掉发布日”会永久删除它。",
        ),
    ),
    Capability(
        "saying",
        Sentence(
            en="**Notes**: “create a note: release checklist”, “add the tag urgent to that note”, "
            "“list my notes”, “search notes for checklist”, “delete the first note”.",
            zh="**笔记**：“建一条笔记：发布清单”、“给那条笔记加上标签紧急”、“列出我的笔记”、"
            "“搜索笔记 清单”、“删除第一条笔记”。",
        ),
    ),
    Capability(
        "saying",
        Sentence(
            en="**Reminders**: “remind us tomorrow at 3 pm to meet”, “every day at 18:00 remind me "
            "to log off”, “cancel the reminder to meet”.",
            zh="**提醒**：“明天下午 3 点提醒我们开会”、“每天 18:00 提醒我写日报”、"
            "“取消开会的提醒”。",
        ),
    ),
    Capability(
        "saying",
        Sentence(
            en="**Going on without a mention**: who goes on with what I just answered need not "
            "mention me again.",
            zh="**接着说**：接着我刚才的回答往下说，不用再 @我。",
        ),
        lambda here: here.follows and here.mode == "follow",
    ),
    Capability(
        "saying",
        Sentence(
            en="**Going on without a mention**: in my own threads, who goes on need not mention "
            "me again.",
            zh="**接着说**：在我自己的话题里接着往下说，不用再 @我。",
        ),
        lambda here: here.follows and here.mode == "threads",
    ),
    Capability(
        "saying",
        Sentence(
            en="**Everything**: here I answer every message that is not for somebody else.",
            zh="**所有消息**：在这里，不是对别人说的消息我都回答。",
        ),
        lambda here: here.follows and here.mode == "all",
    ),
    Capability(
        "saying",
        Sentence(
            en="*No language model is connected: I follow fixed rules. Ask “what can you do?” for "
            "what I understand.*",
            zh="*没有接入语言模型：我按固定规则回答。问“你能做什么？”看我听得懂什么。*",
        ),
        lambda here: here.offline,
    ),
    Capability(
        "command",
        Sentence(
            en="`/new`: start afresh in this thread; what was said before is no longer read",
            zh="`/新对话`：在这个话题里重新开始，之前的内容不再读取",
        ),
    ),
    Capability(
        "command",
        Sentence(
            en="`/memory`: what I keep about you, shown to you alone; correct or delete any of it",
            zh="`/记忆`：只给你看：我记住了你的什么，可以逐条更正或删除",
        ),
    ),
    Capability("command", Sentence(en="`/notes`: your notes", zh="`/笔记`：列出你的笔记")),
    Capability(
        "command",
        Sentence(
            en="`/reminders`: what I will remind of here, with a button to cancel each",
            zh="`/提醒`：这里还没到时间的提醒，可以逐条取消",
        ),
    ),
    Capability(
        "command",
        Sentence(
            en="`/digest`: what was said today, or in this thread, in short; `/digest daily 18:00` "
            "posts it by itself, `/digest off` ends that",
            zh="`/摘要`：今天（或本话题）说了什么；`/摘要 每天 18:00` 定时发出，`/摘要 关闭` 停止",
        ),
    ),
    Capability(
        "command",
        Sentence(
            en="`/forget`: forget this thread, or everything about you (`/forget all`); I ask "
            "before I do",
            zh="`/忘记`：忘记这个话题，或关于你的一切（`/忘记 全部`），会先请你确认",
        ),
    ),
    Capability(
        "command",
        Sentence(
            en="`/quiet`, `/resume`: in this group, speak only when I am mentioned; follow along "
            "again",
            zh="`/安静`、`/继续`：群里没有人 @我 时我不再插话；恢复",
        ),
        lambda here: here.follows,
    ),
    Capability(
        "command",
        Sentence(
            en="`/stop`: I end the answer that I am writing for you; so does **Stop** on its card",
            zh="`/停止`：我停下正在为你写的回答；也可以按卡片上的**停止**",
        ),
    ),
    Capability(
        "command",
        Sentence(
            en="`/why`: why I spoke last, or did not; quote a message to ask about that one",
            zh="`/为什么`：我上一次为什么说话，或者没说话；引用一条消息就是问那一条",
        ),
        lambda here: here.in_group,
    ),
    Capability(
        "command",
        Sentence(
            en="`/settings`: the settings of this chat; its owner, its managers and who added me "
            "change them with `/mode`, `/language`, `/instructions`",
            zh="`/设置`：这个群的设置；群主、管理员和加我进群的人可以用 `/模式`、`/语言`、`/要求` "
            "修改",
        ),
        lambda here: here.in_group,
    ),
    Capability(
        "command",
        Sentence(
            en="`/proactive on`: I also answer questions that nobody answers, where this chat told "
            "me the answer; `/proactive off` ends that",
            zh="`/主动 开`：没有人回答、而这里以前说过答案的问题，我也会主动回答；`/主动 关` 停止",
        ),
        lambda here: here.in_group and here.proactive and here.hears,
    ),
    Capability(
        "command",
        Sentence(
            en="`/settings`: your settings here; change them with `/language`, `/instructions`",
            zh="`/设置`：你在这里的设置；用 `/语言`、`/要求` 修改",
        ),
        lambda here: not here.in_group,
    ),
)

_HEADS: Mapping[Part, Sentence] = {
    "saying": Sentence(en="Here is what I can do:", zh="我能做这些："),
    "command": Sentence(en="Commands (in Chinese too):", zh="命令（英文也可以）："),
}


_WORD = re.compile(r"`(/[^`\s]+)`")
_HELP = Sentence(en="`/help`: what I can do here", zh="`/帮助`：我在这里能做什么")


def offered(here: SetUp) -> list[tuple[Sentence, Sentence]]:
    """The commands that work here, each as the word that is written and what it does."""
    lines = [one.line for one in CAPABILITIES if one.part == "command" and one.is_there(here)]
    found = []
    for line in (*lines, _HELP):
        (words, about), (words_zh, about_zh) = line.en.split(": ", 1), line.zh.split("：", 1)
        pairs = list(zip(_WORD.findall(words), _WORD.findall(words_zh), strict=True))
        abouts = [Sentence(_plain(about), _plain(about_zh))] * len(pairs)
        if len(pairs) > 1:  # “`/quiet`, `/resume`: the one; the other”
            parts = zip(about.split("; "), about_zh.split("；"), strict=True)
            abouts = [Sentence(_plain(en), _plain(zh)) for en, zh in parts]
        found += [(Sentence(*pair), told) for pair, told in zip(pairs, abouts, strict=True)]
    return found


def _plain(markdown: str) -> str:
    return re.sub(r"[`*]", "", markdown)


def help_text(here: SetUp, language: Language) -> str:
    """All that works here, and nothing else."""
    sections = []
    for part, head in _HEADS.items():
        lines = [
            f"- {one.line.said(language)}"
            for one in CAPABILITIES
            if one.part == part and one.is_there(here)
        ]
        sections.append("\n".join((head.said(language), "", *lines)))
    if here.in_group and not here.hears:
        sections.append(MENTIONS_ONLY.said(language))
    return "\n\n".join(sections)
