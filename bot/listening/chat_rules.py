"""Defines the rules that a chat gives the bot, and the budget for answering other bots. Pure.

A new rule is a line of `RULES` and its words in the catalogues of `bot.features.chat_settings`.

Only a person's message to a bot renews the budget; people's other talk does not. With the numbers
below, this bot and another one that answers everything send at most six messages together for one
message of a person to either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from bot.text.languages import Language
from memory.text import has_han, quoted_text

Mode = Literal["mention", "threads", "follow", "all"]
RuleLanguage = Literal["zh", "en", "auto"]
MAX_INSTRUCTIONS = 500
_NO_OWN = frozenset("default none off clear reset 默认 无 清空 清除 取消 恢复默认".split())
_OF_THE_CHAT = "The managers of this chat ask you, as far as nothing above says otherwise:"

PER_REQUEST = 2
PER_SHARED_REQUEST = 1  # the person asked several bots, which all answer anyway
PER_PAIR_AND_HOUR = 12
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ChatRule:
    """A rule with choices; one without choices is free text.

    `chinese`: its word in a Chinese command. `choices`: each with other words that people write for
    it. `default`: what holds in a chat that chose nothing, or `setting`: the attribute of the
    settings that has it. `requires`: the attribute of the settings without which no chat has the
    rule. `needs_hearing`: it works in full only if all messages of a group reach the bot.
    `prompts`: what the model reads where a choice holds.
    """

    name: str
    chinese: str
    choices: Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    setting: str = ""
    only_in_groups: bool = False
    requires: str = ""
    needs_hearing: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_switch(self) -> bool:
        return tuple(self.choices) == ("on", "off")

    def usual(self, settings: object) -> str:
        """What holds in a chat that chose nothing."""
        return str(getattr(settings, self.setting)) if self.setting else self.default

    def is_there(self, settings: object, *, in_group: bool) -> bool:
        """Whether such a chat can have the rule."""
        is_allowed = not self.requires or bool(getattr(settings, self.requires))
        return is_allowed and (in_group or not self.only_in_groups)

    def read(self, text: str) -> str | None:
        """The choice that somebody writes, in either language; "" for the default, None if it is
        neither."""
        word = " ".join(text.split()).strip(".!?。！？ ").casefold()
        if not self.choices:
            return "" if word in _NO_OWN else text
        for choice, others in self.choices.items():
            if word == choice or word in others.split():
                return self.value_of(choice)
        return "" if word in _NO_OWN else None

    def word(self, choice: str, *, chinese: bool) -> str:
        """What people write for a choice."""
        words = self.choices[choice].split() if chinese else ()
        return next((one for one in words if has_han(one)), choice)

    def value_of(self, choice: str) -> str:
        """What is stored for a choice: nothing for the default of the table."""
        return "" if choice == self.default else choice

    def allows(self, value: object) -> bool:
        """Whether a stored value counts."""
        return isinstance(value, str) and (value in self.choices if self.choices else value != "")


RULES: dict[str, ChatRule] = {
    rule.name: rule
    for rule in (
        # mention: the bot answers only who addresses it. threads: also who goes on in its threads.
        # follow: also who goes on in the chat just after it spoke. all: everybody who does not
        # speak to somebody else.
        ChatRule(
            "mode",
            "模式",
            {
                "mention": "mentions 提及 仅提及 点名 仅点名",
                "threads": "thread 话题 仅话题",
                "follow": "follow-up follow-ups followups 跟随 接话 追问",
                "all": "everything 全部 所有 都回答",
            },
            setting="chat_mode",
            only_in_groups=True,
            needs_hearing=True,
        ),
        ChatRule(
            "language",
            "语言",
            {
                "zh": "chinese 中文 汉语 简体中文",
                "en": "english 英文 英语",
                "auto": "automatic 自动 跟随提问",
            },
            setting="chat_language",
            prompts={
                "zh": "Answer in Chinese, in whatever language you are asked.",
                "en": "Answer in English, in whatever language you are asked.",
            },
        ),
        ChatRule("instructions", "要求"),
        # The bot also answers what nobody answers.
        ChatRule(
            "proactive",
            "主动",
            {"on": "开 开启", "off": "关 关闭"},
            "off",
            only_in_groups=True,
            requires="proactive",
            needs_hearing=True,
        ),
        # Whether newcomers see what was said before they joined. unstated: what the bot heard is
        # told to everybody, imported history to each as far as they were there.
        ChatRule(
            "history",
            "历史",
            {
                "unstated": "unset 未说明 不说明",
                "shown": "show 显示 可见",
                "hidden": "hide 隐藏 不可见",
            },
            "unstated",
            only_in_groups=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What holds in a chat. `own_values`: the rules that the chat set itself, with their values;
    `usual`: what holds of the others. Of before `told_since_ms` nothing is told here."""

    own_values: Mapping[str, str]
    usual: Mapping[str, str]
    told_since_ms: int = 0

    def choice(self, name: str) -> str:
        return self.own_values.get(name) or self.usual[name]

    @property
    def mode(self) -> Mode:
        return cast(Mode, self.choice("mode"))

    @property
    def language(self) -> RuleLanguage:
        return cast(RuleLanguage, self.choice("language"))


def rules_of(row: Mapping[str, Any] | None, settings: object) -> ChatRules:
    """The rules of a row of `get_chat_rules`; a value that the table does not have does not
    count."""
    row = row or {}
    choices = {name: row[name] for name, rule in RULES.items() if rule.allows(row.get(name))}
    usual = {name: rule.usual(settings) for name, rule in RULES.items()}
    return ChatRules(choices, usual, row.get("told_since_ms") or 0)


def owner_instructions(owner: str, rules: ChatRules) -> str:
    """The owner's instructions with those of the chat, whose managers wrote them, below them."""
    parts = [owner.strip()]
    parts += [rule.prompts.get(rules.choice(name), "") for name, rule in RULES.items()]
    if instructions := rules.choice("instructions"):
        parts.append(f"{_OF_THE_CHAT}\n{quoted_text(instructions)}")
    return "\n\n".join(part for part in parts if part)


def languages_of(rule: RuleLanguage, chat_name: str, *, lark: bool) -> tuple[Language, ...]:
    """In which language people are met: the chat's, else that of its name; both where nothing
    tells, but for Lark, which is used outside of China."""
    if rule != "auto":
        return (rule,)
    if has_han(chat_name):
        return ("zh",)
    return ("en",) if lark else ("zh", "en")


@dataclass(frozen=True)
class BotBudget:
    """What the budget is counted from. Times are ms since the epoch.

    `answers` are (open_id of the other bot, time of its message) for each message of a bot that got
    an answer here or is about to. `request_ms` is when a person last wrote to this bot or
    another, `shared` whether to both at once, and `unasked` how many messages to nobody this bot
    has answered since, a moment ago.
    """

    answers: tuple[tuple[str, int], ...] = ()
    request_ms: int | None = None
    shared: bool = False
    unasked: int = 0

    def remaining(self, bot_id: str, at: int, *, is_reply: bool) -> int:
        """How many more answers that bot gets, this one included, for its message at `at`.

        Without a request a bot gets answers every hour, since an alert may ask as well. A reply
        belongs to an exchange that is under way, however slow, and gets no new ones by waiting.
        """
        request_ms = self.request_ms or 0
        window_start = request_ms if is_reply else max(request_ms, at - HOUR_MS + 1)
        spent_answers = sum(time >= window_start for _, time in self.answers)
        limit = PER_SHARED_REQUEST if self.shared and window_start == request_ms else PER_REQUEST
        lately = sum(bot == bot_id and time > at - HOUR_MS for bot, time in self.answers)
        # Bots that talk to each other do not use up the answer to a third one.
        first = 1 if not lately and not is_reply else 0
        return min(max(limit - spent_answers, first) - self.unasked, PER_PAIR_AND_HOUR - lately)


NOTHING_SPENT = BotBudget()
