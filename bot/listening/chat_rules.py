"""The rules that a chat gives the bot: when it speaks, in which language, instructions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memory.foreign_text import quoted

Mode = Literal["mention", "threads", "follow", "all"]
RuleLanguage = Literal["zh", "en", "auto"]
History = Literal["shown", "hidden"]

MODES: tuple[Mode, ...] = get_args(Mode)
LANGUAGES: tuple[RuleLanguage, ...] = get_args(RuleLanguage)
HISTORIES: tuple[History, ...] = get_args(History)
MAX_INSTRUCTIONS = 500
_SAID: Mapping[str, Mapping[str, str]] = {
    "mode": {
        **{mode: mode for mode in MODES},
        **dict.fromkeys(("mentions", "提及", "仅提及", "点名", "仅点名"), "mention"),
        **dict.fromkeys(("thread", "话题", "仅话题"), "threads"),
        **dict.fromkeys(("follow-up", "follow-ups", "followups", "跟随", "接话", "追问"), "follow"),
        **dict.fromkeys(("everything", "全部", "所有", "都回答"), "all"),
    },
    "language": {
        **{language: language for language in LANGUAGES},
        **dict.fromkeys(("chinese", "中文", "汉语", "简体中文"), "zh"),
        **dict.fromkeys(("english", "英文", "英语"), "en"),
        **dict.fromkeys(("automatic", "自动", "跟随提问"), "auto"),
    },
}
_NO_OWN = frozenset("default none off clear reset 默认 无 清空 清除 取消 恢复默认".split())


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What holds in a chat; `own` names the rules that the chat set itself.

    mention: only who addresses the bot is answered. threads: also who goes on in a thread of the
    bot. follow: also who goes on in the chat just after the bot spoke. all: everybody who does not
    speak to somebody else. `proactive`: the bot also answers what nobody answers. `history`:
    whether newcomers see what was said before; of before `told_since_ms` nothing is told here.
    """

    mode: Mode = "follow"
    language: RuleLanguage = "auto"
    instructions: str = ""
    proactive: bool = False
    history: History = "shown"
    told_since_ms: int = 0
    own: frozenset[str] = frozenset()


def is_default(said: str) -> bool:
    """Whether somebody wants no rule of the chat's own: default, clear, 默认."""
    return _plain(said) in _NO_OWN


def rule_said(name: str, said: str) -> str | None:
    """The mode or language that somebody writes, in either language; None if it is none."""
    return _SAID[name].get(_plain(said))


def _plain(said: str) -> str:
    return said.strip().strip("。.!！").casefold()


def rules_of(row: Mapping[str, Any] | None, usual: ChatRules) -> ChatRules:
    """The rules of a row of `get_chat_rules`; what it does not set is as usual."""
    own = {name: value for name, value in (row or {}).items() if value}
    return ChatRules(
        own.get("mode", usual.mode),
        own.get("language", usual.language),
        own.get("instructions", usual.instructions),
        bool(own.get("proactive")),
        own.get("history", "shown"),
        own.pop("told_since_ms", 0),
        frozenset(own),
    )


def told_by_owner(owner: str, rules: ChatRules) -> str:
    """The owner's instructions with those of the chat, whose managers wrote them, below them."""
    parts = [owner.strip(), _LANGUAGE.get(rules.language, "")]
    if rules.instructions:
        parts.append(f"{_OF_THE_CHAT}\n{quoted(rules.instructions)}")
    return "\n\n".join(part for part in parts if part)


_LANGUAGE: Mapping[str, str] = {
    "zh": "Answer in Chinese, in whatever language you are asked.",
    "en": "Answer in English, in whatever language you are asked.",
}
_OF_THE_CHAT = "The managers of this chat ask you, as far as nothing above says otherwise:"
