"""What the bot can do where it is asked: the one list of which `/help` is made. Pure.

A capability is a line, or two in both languages, and when it is there. What stands in “…” is an
example that works as it is written, one after the other; a test says each of them to the bot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.features.help.texts import CATALOGUE, say
from bot.listening.chat_rules import Mode, rules_of
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
    connects: bool = False

    @property
    def in_group(self) -> bool:
        return self.chat_type != "p2p"

    @property
    def imports(self) -> bool:
        """Whether the history of the chat can be imported."""
        return self.shares and self.hears

    @property
    def follows(self) -> bool:
        """Whether it speaks without being addressed."""
        listens = self.shares and self.mode != "mention"
        return self.in_group and self.hears and (listens or self.mode == "all")


def set_up(
    settings: Settings, chat_type: ChatType, rules: Mapping[str, Any], *, hears: bool = True
) -> SetUp:
    """What it is here; `rules` is a row of `get_chat_rules`."""
    return SetUp(
        chat_type,
        rules_of(rules, settings).mode,
        shares=settings.sharing == "chat",
        proactive=settings.proactive,
        offline=not settings.openai_api_key,
        hears=hears,
        connects=bool(settings.user_token_key),
    )


@dataclass(frozen=True, slots=True)
class Capability:
    """One line of the help, the text of `key` that begins with its part, and whether the bot can do
    that."""

    key: str
    is_there: Callable[[SetUp], bool] = lambda _: True


CAPABILITIES: tuple[Capability, ...] = (
    Capability("saying-ask-in-group", lambda here: here.in_group),
    Capability("saying-ask-in-p2p", lambda here: not here.in_group and here.shares),
    Capability("saying-ask-in-p2p-alone", lambda here: not here.in_group and not here.shares),
    Capability("saying-ask-for-others", lambda here: here.in_group and here.shares),
    Capability("saying-facts"),
    Capability("saying-notes"),
    Capability("saying-reminders"),
    Capability("saying-documents", lambda here: here.connects),
    Capability("saying-calendar", lambda here: here.connects),
    Capability("saying-go-on", lambda here: here.follows and here.mode == "follow"),
    Capability("saying-go-on-in-threads", lambda here: here.follows and here.mode == "threads"),
    Capability("saying-answer-everything", lambda here: here.follows and here.mode == "all"),
    Capability("saying-offline", lambda here: here.offline),
    Capability("command-new"),
    Capability("command-memory"),
    Capability("command-notes"),
    Capability("command-reminders"),
    Capability("command-digest"),
    Capability("command-forget"),
    Capability("command-quiet", lambda here: here.follows),
    Capability("command-resume", lambda here: here.follows),
    Capability("command-stop"),
    Capability("command-why", lambda here: here.in_group),
    Capability("command-settings", lambda here: here.in_group),
    Capability("command-proactive", lambda here: here.in_group and here.proactive and here.hears),
    Capability("command-settings-in-p2p", lambda here: not here.in_group),
    Capability("command-import", lambda here: here.in_group and here.imports),
    Capability("command-import-in-p2p", lambda here: not here.in_group and here.imports),
    Capability("command-connect", lambda here: here.connects),
)

_WORD = re.compile(r"`(/[^`\s]+)`")


def offered(here: SetUp) -> list[tuple[Sentence, Sentence]]:
    """The commands that work here, each as the word that is written and what it does."""
    keys = [one.key for one in _there("command", here)]
    capabilities = []
    for line in map(CATALOGUE.both, (*keys, "command-help")):
        (words, about), (words_zh, about_zh) = line.en.split(": ", 1), line.zh.split("：", 1)
        description = Sentence(_plain(about), _plain(about_zh))
        pairs = zip(_WORD.findall(words), _WORD.findall(words_zh), strict=True)
        capabilities += [(Sentence(*pair), description) for pair in pairs]
    return capabilities


def _plain(markdown: str) -> str:
    return re.sub(r"[`*]", "", markdown)


def help_text(here: SetUp, language: Language) -> str:
    """All that works here, and nothing else."""
    sections = []
    for part in get_args(Part):
        lines = [f"- {say(one.key, language)}" for one in _there(part, here)]
        sections.append("\n".join((say(f"heading-{part}", language), "", *lines)))
    if here.in_group and not here.hears:
        sections.append(say("mentions-only", language))
    return "\n\n".join(sections)


def _there(part: Part, here: SetUp) -> list[Capability]:
    return [one for one in CAPABILITIES if one.key.startswith(part) and one.is_there(here)]
