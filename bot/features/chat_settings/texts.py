"""The texts about a chat's rules, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.listening.chat_rules import LANGUAGES, MAX_INSTRUCTIONS, MODES, ChatRules
from bot.text.languages import Language

Texts = Mapping[Language, str]

MODE_MEANS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "mention": "只在被 @ 或被回复时回答",
        "threads": "还会在我自己的话题里接着回答",
        "follow": "还会回答刚跟我说完话、接着往下说的人",
        "all": "回答每一条不是对别人说的消息",
    },
    "en": {
        "mention": "only when I am mentioned or replied to",
        "threads": "also who goes on in my own threads",
        "follow": "also who goes on in the chat just after I spoke",
        "all": "every message that is not for somebody else",
    },
}
LANGUAGE_MEANS: Mapping[Language, Mapping[str, str]] = {
    "zh": {"zh": "中文", "en": "英文", "auto": "跟随提问的语言"},
    "en": {"zh": "Chinese", "en": "English", "auto": "that of the question"},
}
HISTORY_MEANS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "shown": "能看到：群里说过的我都可以用来回答",
        "hidden": "看不到：最近一位成员入群之前说的，我在群里不再提",
    },
    "en": {
        "shown": "they see it: I answer with whatever was said here",
        "hidden": "they do not: here I tell nothing from before the newest member joined",
    },
}
REFUSED: Texts = {
    "zh": "只有群主、群管理员，或把我加进群的人可以改设置。什么都没有改动；请找他们来改。",
    "en": "Only the group's owner, its managers, or who added me can change the settings. Nothing "
    "was changed; please ask one of them.",
}
UNREADABLE: Texts = {
    "zh": "我读不到谁是群主和管理员（缺少权限 im:chat:readonly，或飞书没有应答），所以不能改设置。"
    "什么都没有改动；请管理员开通该权限，或稍后再试。",
    "en": "I cannot read who owns and manages this group (the scope im:chat:readonly is missing or "
    "Feishu did not answer), so the settings stay as they are. Ask an administrator to grant the "
    "scope, or try again later.",
}
TOO_LONG: Texts = {
    "zh": f"要求最多 {MAX_INSTRUCTIONS} 个字符，什么都没有改动。请写短一些。",
    "en": f"Instructions may have at most {MAX_INSTRUCTIONS} characters; nothing was changed. "
    "Please shorten them.",
}
PROACTIVE_STOPPED: Texts = {
    "zh": "好的，在这个群里我不再主动回答没有问我的问题。`/主动 开` 可以重新开启。",
    "en": "All right: in this group I no longer answer what I was not asked. `/proactive on` "
    "brings it back.",
}
NO_PROACTIVE: Texts = {
    "zh": "这里没有主动回答：只有在群里才有，而且部署者可以关闭它。",
    "en": "There are no proactive answers here: only groups have them, and who runs me can switch "
    "them off.",
}
CHANGED: Texts = {"zh": "已保存。", "en": "Saved."}
UNCHANGED: Texts = {
    "zh": "现在就是这样设置的。",
    "en": "These are the settings.",
}
# What stands above each select of the form.
NAMES: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "mode": "我什么时候回答",
        "language": "用什么语言回答",
        "proactive": "主动回答没人回答的问题",
        "digest": "定时摘要",
        "history": "新成员能否看到入群前的消息",
    },
    "en": {
        "mode": "When I answer",
        "language": "In which language",
        "proactive": "Answer unasked what nobody answers",
        "digest": "Digest by itself",
        "history": "Whether new members see earlier messages",
    },
}
NO_SUCH: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "mode": f"请写 `/模式` 加上其中之一：{'、'.join(MODES)}，或 default。",
        "language": f"请写 `/语言` 加上其中之一：{'、'.join(LANGUAGES)}，或 default。",
        "proactive": "请写 `/主动 开` 或 `/主动 关`。",
    },
    "en": {
        "mode": f"Please write `/mode` and one of {', '.join(MODES)}, or default.",
        "language": f"Please write `/language` and one of {', '.join(LANGUAGES)}, or default.",
        "proactive": "Please write `/proactive on` or `/proactive off`.",
    },
}
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "intro": "**这个群的设置**",
        "mode": "我什么时候回答（`/模式`）",
        "language": "用什么语言回答（`/语言`）",
        "instructions": "对我的要求（`/要求 …`，`/要求 default` 取消）",
        "proactive": "没有人回答、而这里以前说过答案的问题，我主动回答（`/主动 开`、`/主动 关`）",
        "history": "新成员和入群前的消息",
        "on": "开",
        "off": "关",
        "own": "本群设置",
        "usual": "默认",
        "none": "（没有）",
        "who": "群主、群管理员和把我加进群的人可以修改。",
        "colon": "：",
    },
    "en": {
        "intro": "**Settings of this chat**",
        "mode": "When I answer (`/mode`)",
        "language": "In which language (`/language`)",
        "instructions": "Instructions to me (`/instructions …`, `/instructions default` takes them "
        "back)",
        "proactive": "Unasked, I answer questions that nobody answers and this chat told me the "
        "answer to (`/proactive on`, `/proactive off`)",
        "history": "New members and earlier messages",
        "on": "on",
        "off": "off",
        "own": "set here",
        "usual": "default",
        "none": "(none)",
        "who": "The owner, the managers and who added me can change them.",
        "colon": ": ",
    },
}


def shown_rules(
    rules: ChatRules, language: Language, *, proactive: bool = False, group: bool = False
) -> str:
    """What holds and where it comes from. `proactive`: whether the chat can want proactive
    answers; `group`: whether people join it."""
    words = _WORDS[language]

    def line(name: str, value: str, meaning: str = "") -> str:
        source = words["own" if name in rules.own else "usual"]
        shown = f"**{words[name]}**{words['colon']}{value} ({source})"
        return f"{shown}{words['colon']}{meaning}" if meaning else shown

    instructions = " ".join(rules.instructions.replace("`", "'").split()) or words["none"]
    return "\n".join(
        (
            words["intro"],
            "",
            line("mode", f"`{rules.mode}`", MODE_MEANS[language][rules.mode]),
            line("language", f"`{rules.language}`", LANGUAGE_MEANS[language][rules.language]),
            line("instructions", instructions),
            *([line("proactive", words["on" if rules.proactive else "off"])] * proactive),
            *([line("history", HISTORY_MEANS[language][rules.history])] * group),
            "",
            words["who"],
        )
    )
