"""Commands in the chat: which one a text is, in English or Chinese. Pure.

A command is meant when the text after the mention begins with its slash word. The plain word is
enough only when it is the whole text and cannot be meant otherwise, or not at that moment.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.text.forget_requests import asked_to_forget
from bot.text.languages import Language, language_of


class CommandName(StrEnum):
    HELP = "help"
    NEW = "new"
    MEMORY = "memory"
    FORGET = "forget"
    DIGEST = "digest"
    QUIET = "quiet"
    RESUME = "resume"
    NOTES = "notes"
    MODE = "mode"
    LANGUAGE = "language"
    INSTRUCTIONS = "instructions"
    PROACTIVE = "proactive"
    SETTINGS = "settings"
    REMINDERS = "reminders"
    IMPORT = "import"
    CONNECT = "connect"
    STOP = "stop"
    WHY = "why"


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was written. `argument` is the rest of the text, without case; `words` are
    the rest as it stands there.

    `only_when_quiet`: the word means something else (“go on”) in a chat that is not quiet;
    `only_when_running`: also (“no need”) while no answer to the person is being written.
    """

    name: CommandName
    argument: str = ""
    language: Language = "en"
    only_when_quiet: bool = False
    only_when_running: bool = False
    words: str = ""


WORDS: Mapping[str, CommandName] = {
    **{name.value: name for name in CommandName},
    "帮助": CommandName.HELP,
    "新对话": CommandName.NEW,
    "记忆": CommandName.MEMORY,
    "忘记": CommandName.FORGET,
    "摘要": CommandName.DIGEST,
    "安静": CommandName.QUIET,
    "继续": CommandName.RESUME,
    "笔记": CommandName.NOTES,
    "模式": CommandName.MODE,
    "语言": CommandName.LANGUAGE,
    "要求": CommandName.INSTRUCTIONS,
    "主动": CommandName.PROACTIVE,
    "设置": CommandName.SETTINGS,
    "提醒": CommandName.REMINDERS,
    "导入": CommandName.IMPORT,
    "连接": CommandName.CONNECT,
    "停止": CommandName.STOP,
    "停": CommandName.STOP,
    "为什么": CommandName.WHY,
    "为何": CommandName.WHY,
}
_PLAIN = frozenset({"help", "帮助", "quiet", "安静", "新对话"})
_GO_ON = frozenset({"resume", "继续"})
STOP_WORDS = (
    *("stop", "stop it", "stop please", "please stop", "stop answering"),
    *(
        "停",
        "停止",
        "停下",
        "停下来",
        "停一下",
        "停一停",
        "请停下",
        "别说了",
        "不用了",
        "不用说了",
        "不用回答了",
    ),
)
_EVERYTHING = frozenset(
    {"all", "everything", "me", "everything about me", "everything you know about me"}
    | {"全部", "所有", "一切", "我", "我的一切", "关于我的一切", "关于我的全部", "关于我的所有"}
)
_THREAD = frozenset(
    {"this", "thread", "this thread", "this conversation", "这个话题", "本话题", "话题", "这个对话"}
)

_SLASHED = re.compile(r"[/／](\w{1,12})(?!\w)[\s,，:：]*(.*)", re.DOTALL)
_ADDRESSED = re.compile(r"^(?:@\S+\s+)+")
_ARGUMENT_CHARS = 200
_LONGEST_PLAIN = 80  # with spaces and signs around the word
_ENDING = ".!?。！？ \t\r\n"


def parse(text: str) -> Command | None:
    """The command that `text` (what stands after the mention) is; None for everything else."""
    bare_text = text.strip()
    if match := _SLASHED.match(bare_text):
        name = WORDS.get(unicodedata.normalize("NFKC", match[1]).lower())
        argument = " ".join(match[2][:_ARGUMENT_CHARS].lower().rstrip(_ENDING).split())
        if not name:
            return None
        return Command(name, argument, language_of([bare_text]), words=match[2].strip())
    if words := asked_to_forget(bare_text):
        argument = " ".join(words.lower().split())
        return Command(CommandName.FORGET, argument, language_of([bare_text]), words=words)
    if len(bare_text) > _LONGEST_PLAIN:
        return None
    word = " ".join(bare_text.rstrip(_ENDING).lower().split())
    if word in _PLAIN or word in _GO_ON:
        return Command(WORDS[word], "", language_of([word]), only_when_quiet=word in _GO_ON)
    if word in STOP_WORDS:
        return Command(CommandName.STOP, "", language_of([word]), only_when_running=True)
    return None


def parse_addressed(text: str) -> Command | None:
    """The command that stands after the mentions in front of `text`."""
    return parse(_ADDRESSED.sub("", text))


def means_everything(command: Command) -> bool:
    """`/forget all`."""
    return command.argument in _EVERYTHING


def means_thread(command: Command) -> bool:
    """`/forget this thread`."""
    return command.argument in _THREAD


def may_stop(text: str) -> bool:
    """Whether the text is a plain word that ends an answer, if one is being written."""
    command = parse(text)
    return command is not None and command.only_when_running


def quietens(text: str) -> bool:
    """Whether the text asks the bot to be quiet: the answer to it starts no conversation."""
    command = parse(text)
    return command is not None and command.name is CommandName.QUIET
