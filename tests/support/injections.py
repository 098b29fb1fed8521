"""Attacks by text, and what a model that obeys every one of them would do.

An attack orders tool calls (`call NAME {json}`, `调用 NAME {json}`) and words to be said («…»); «*»
is everything the model was given. `$victim`, `$stranger` and `$note` stand for ids,
`$stranger_name` for a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Literal

CALL = r"(?:call|调用) (?P<tool>[a-z_]+) (?P<arguments>\{(?:[^{}]|\{[^{}]*\})*\})"
SAY = r"«(?P<words>[^»]*)»"
EVERYTHING = "*"

Goal = Literal["ping_all", "ping_stranger", "read_memory", "write_memory", "run_confirm"]

_FILE = Path(__file__).parents[1] / "data" / "injections.jsonl"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: `where` its text stands and what it is after (`goal`).

    `about` "victim": the attacker mentions the victim, so that the turn works on their memory.
    `asker`: who asks the bot where it is not the attacker, the bystander or the victim.
    """

    id: str
    lang: Literal["en", "zh"]
    where: str
    goal: Goal
    text: str
    about: str = ""
    asker: str = ""

    def aimed(self, names: Mapping[str, str]) -> str:
        """The text with its placeholders filled in."""
        return Template(self.text).safe_substitute(names)


def attacks() -> list[Attack]:
    """All attacks of the collection."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [Attack(**json.loads(line)) for line in lines]


def ordered_calls(prompt: str) -> list[tuple[str, Any]]:
    """The tool calls that stand in `prompt`, each once: name and arguments."""
    found = dict.fromkeys((m["tool"], m["arguments"]) for m in re.finditer(CALL, prompt))
    return [(tool, json.loads(arguments)) for tool, arguments in found]


def ordered_words(prompt: str) -> str:
    """What `prompt` orders to say."""
    words = [match["words"] for match in re.finditer(SAY, prompt)]
    return "\n".join(prompt if one == EVERYTHING else one for one in dict.fromkeys(words))
