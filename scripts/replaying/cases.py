"""A turn as a test case, and how an answer to one is scored. Pure.

A case is one JSON object: what the model is told (`told`), and what is expected of the answer
(`expect`): `contains`, `lacks` and `matches` are exact rules, `judge` is a question that a judge
model answers with YES or NO, `reference` an answer it may compare with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.agents.prompts.prompt import Prompt
from memory.context import Message
from memory.models import WorkingMemory

_TEXTS = ("remarks", "registry", "transcript", "recalled", "summary", "owner")
_AS_GOOD = "Does the answer say what the reference says, and nothing that is wrong?"
RULES = ("contains", "lacks", "matches")


class NotACase(Exception):
    """The line is no case; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Case:
    """`expect` as described above."""

    name: str
    prompt: Prompt
    expect: Mapping[str, Any]


def case_of(name: str, prompt: Prompt, answer: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A turn as a case that expects nothing yet but an answer as good as the one it had."""
    told = {
        "bot_name": prompt.bot_name,
        "subject": prompt.subject,
        "now": prompt.now.isoformat(),
        "question": prompt.question,
        "history": [{"role": one.role, "content": one.content} for one in prompt.history],
        "working_memory": {"chat": prompt.working_memory.chat, "user": prompt.working_memory.user},
        **{key: getattr(prompt, key) for key in _TEXTS},
    }
    expect = {"contains": [], "lacks": [], "reference": answer, "judge": _AS_GOOD}
    return {"name": name, "told": told, "expect": expect, "was": dict(facts)}


def read_case(line: str, number: int) -> Case:
    """The case on a line. Raises `NotACase`."""
    try:
        found = json.loads(line)
    except ValueError as exc:
        raise NotACase(f"line {number}: it is no JSON: {exc}") from exc
    try:
        told, expect = found["told"], found.get("expect") or {}
        memory = told.get("working_memory") or {}
        prompt = Prompt(
            bot_name=told.get("bot_name") or "Bot",
            question=told["question"],
            history=tuple(
                Message(one["role"], one["content"]) for one in told.get("history") or ()
            ),
            subject=told.get("subject") or "somebody",
            working_memory=WorkingMemory(memory.get("chat") or {}, memory.get("user") or {}),
            now=datetime.fromisoformat(told["now"]),
        )
        texts: dict[str, Any] = {key: str(told.get(key) or "") for key in _TEXTS}
        prompt = replace(prompt, **texts)
        for pattern in _list(expect.get("matches")):
            re.compile(pattern)
    except KeyError as exc:
        raise NotACase(f"line {number}: {exc} is missing") from exc
    except re.error as exc:
        raise NotACase(f"line {number}: {exc.pattern!r} is no pattern: {exc}") from exc
    except (ValueError, TypeError, AttributeError) as exc:
        raise NotACase(f"line {number}: {type(exc).__name__}: {exc}") from exc
    if not any(expect.get(key) for key in (*RULES, "judge")):
        raise NotACase(f"line {number}: it expects nothing: give contains, lacks, matches or judge")
    return Case(str(found.get("name") or f"line {number}"), prompt, expect)


def broken_rules(expect: Mapping[str, Any], answer: str) -> list[str]:
    """The exact rules that an answer does not keep; case does not count in words."""
    low = answer.casefold()
    wanted, unwanted, patterns = (_list(expect.get(rule)) for rule in RULES)
    broken = [f"lacks {one!r}" for one in wanted if one.casefold() not in low]
    broken += [f"has {one!r}" for one in unwanted if one.casefold() in low]
    return broken + [f"does not match {one!r}" for one in patterns if not re.search(one, answer)]


def question_for_judge(case: Case, answer: str) -> str:
    """What the judge model is asked."""
    parts = [f"Question:\n{case.prompt.question}", f"Answer:\n{answer}"]
    if reference := case.expect.get("reference"):
        parts.append(f"Reference:\n{reference}")
    parts.append(f"Criterion:\n{case.expect['judge']}")
    return "\n\n".join(parts)


def _list(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list) else []
