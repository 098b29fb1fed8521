"""Asks an earlier question again, with another model or other instructions, and sends nothing.

The prompt is built from the record of the turn (TRACE_DAYS) and what the memory still has; tools
answer from the memory as it was and change nothing. TURN is the id of the question's message or of
a card, as in the log and on the pages of /console.

Examples:
  scripts/replay om_a1b2                            with today's settings
  scripts/replay om_a1b2 --model gpt-4.1            with another model of the same endpoint
  scripts/replay om_a1b2 --instructions new.txt     instead of BOT_INSTRUCTIONS
  scripts/replay om_a1b2 --prompt                   only shows what the model is told
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from bot.agents.prompts.prompt import ModelUnavailable, manager_instructions
from bot.features.registry import TOOLS
from bot.feishu import markup
from bot.operations.replay import (
    NoSuchTurn,
    RebuiltPrompt,
    RecordedTurn,
    Rerun,
    ask_again,
    prompt_of_turn,
    read_turn,
)
from bot.queue.connections import check_database, database_url, require_migrated
from bot.queue.looking import explain
from bot.settings import EXIT_STATUS, Settings, SettingsError, load_existing
from bot.text.languages import Sentence
from bot.text.roster import from_card
from scripts.operating.arguments import (
    FINDINGS,
    add_language,
    in_language,
    language,
    parser,
    run_script,
)
from scripts.operating.console import Screen, print_json, run
from scripts.operating.desk import script_user

_ADDRESS = re.compile(r"\A<at id=[^>]*></at>[ \t]*")


def main() -> int:
    return run(_work, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("replay", __doc__)
    options.add_argument("turn", metavar="TURN", help="of the question's message, or of a card")
    options.add_argument("--model", metavar="M", help="instead of OPENAI_MODEL")
    options.add_argument("--instructions", type=Path, metavar="FILE", help="for BOT_INSTRUCTIONS")
    options.add_argument("--prompt", action="store_true", help="show the prompt, ask nothing")
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


_NO_SUCH_TURN = Sentence(
    "There is no such turn: give the id of its question or of a card, or copy it from /console.",
    "没有这一轮问答：请给出提问或卡片的消息编号，也可以从 /console 复制。",
)


async def _work(given: argparse.Namespace) -> int:
    settings = _changed(load_existing(), given)
    check_database(settings)
    url = database_url(settings)
    try:
        require_migrated(url)
        turn, known = read_turn(url, given.turn, script_user())
    except NoSuchTurn:
        print(f"{given.turn}: {_NO_SUCH_TURN.said(language(given.lang))}", file=sys.stderr)
        return FINDINGS
    except psycopg.Error as exc:
        raise explain(url, exc) from exc
    if given.prompt:
        return _prompt(given, await prompt_of_turn(settings, url, turn, known))
    try:
        prompt, new = await ask_again(settings, url, turn, known, TOOLS)
    except ModelUnavailable as exc:
        en, zh = f"the model gave no answer: {exc.reason}", f"模型没有给出回答：{exc.reason}"
        print(in_language(en, zh, given.lang), file=sys.stderr)
        return EXIT_STATUS
    _show(given, settings, turn, known, prompt, new)
    return 0


def _changed(settings: Settings, given: argparse.Namespace) -> Settings:
    """Raises `SettingsError` if only the offline model would answer under that name."""
    if given.model and not settings.openai_api_key:
        raise SettingsError(
            f"no model {given.model!r} without OPENAI_API_KEY: the offline model would answer.",
            f"没有 OPENAI_API_KEY 就没有模型 {given.model!r}：回答的会是离线模型。",
        )
    settings = replace(settings, openai_model=given.model or settings.openai_model)
    if not given.instructions:
        return settings
    return replace(settings, bot_instructions=_text_of(given.instructions))


def _text_of(file: Path) -> str:
    """Raises `SettingsError` for what is not a text file."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = f"{file} cannot be read: choose a text file."
        raise SettingsError(why, f"{file} 无法读取：请选择文本文件。") from exc


def _prompt(given: argparse.Namespace, again: RebuiltPrompt) -> int:
    prompt = again.prompt
    said = [f"{one.role}: {one.content}" for one in prompt.history]
    parts = [manager_instructions(prompt, with_tools=True), *said, f"user: {prompt.question}"]
    if given.json:
        print_json({"prompt": parts, "missing": [one.en for one in again.missing]})
        return 0
    for one in again.missing:
        print(one.said(language(given.lang)), file=sys.stderr)
    print("\n\n".join(parts))
    return 0


def _show(
    given: argparse.Namespace,
    settings: Settings,
    turn: RecordedTurn,
    known: list[tuple[str, str]],
    prompt: RebuiltPrompt,
    new: Rerun,
) -> None:
    before, after = turn.record, new.answer
    shown = _visible(turn.answer, dict(known))
    changed = _difference(shown, after.text)
    model = settings.openai_model if settings.openai_api_key else "offline"
    compared = [
        ("model", before.get("model"), model),
        ("tools", _tools(turn.tool_calls), _tools(after.tool_calls)),
        ("tokens in", before.get("tokens_in"), after.input_tokens),
        ("tokens out", before.get("tokens_out"), after.output_tokens),
        ("model, s", _seconds(before.get("model_ms")), round(new.seconds, 2)),
    ]
    if given.json:
        print_json({
            "turn": turn.id, "question": turn.question,
            "before": shown, "after": after.text,
            "difference": changed, "missing": [one.en for one in prompt.missing],
            "compared": {name: {"before": was, "after": now} for name, was, now in compared},
        })  # fmt: skip
        return
    screen = Screen(language(given.lang))
    for one in prompt.missing:
        screen.say(one.said(language(given.lang)), style="yellow")
    rows = [(screen.said(name), *values) for name, *values in compared]
    title = f"{screen.said('turn')} {turn.id}"
    screen.table(title, ("what", "as it was", "as it would be"), rows)
    print("\n".join(changed) if changed else screen.said("the same answer"))


def _visible(answer: str, names: Mapping[str, str]) -> str:
    """Returns a stored card nearly as the model wrote it: without its addressee, and with names for
    at-tags."""
    return from_card(_ADDRESS.sub("", answer, count=1), names, unescape=markup.unescape)


def _difference(before: str, after: str) -> list[str]:
    """Returns a unified diff; nothing for equal answers."""
    names = ("as it was", "as it would be")
    return [
        *difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=2)
    ]


def _tools(calls: Sequence[Mapping[str, Any]]) -> str:
    """Names the called tools in order; one that failed has a mark."""
    named = [f"{call['name']}{'' if call.get('ok', True) else ' (failed)'}" for call in calls]
    return ", ".join(named)


def _seconds(ms: object) -> float | None:
    return round(ms / 1000, 2) if isinstance(ms, int | float) else None


if __name__ == "__main__":
    run_script(main)
