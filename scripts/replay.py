"""Asks an earlier question again, with another model or other instructions, and sends nothing.

The prompt is built from the record of the turn (TRACE_DAYS) and what the memory still has; tools
answer from the memory as it was and change nothing. TURN is the id of the question's message or of
a card, as in the log and on the pages of /console.

Examples:
  scripts/replay om_a1b2                            with today's settings
  scripts/replay om_a1b2 --model gpt-4.1            with another model of the same endpoint
  scripts/replay om_a1b2 --instructions new.txt     instead of BOT_INSTRUCTIONS
  scripts/replay om_a1b2 --prompt                   only shows what the model is told
  scripts/replay om_a1b2 --export cases.jsonl       as a test case for scripts/evaluate
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import psycopg

from bot.agents.prompts.prompt import ModelUnavailable, manager_instructions
from bot.features.registry import TOOLS
from bot.operations.replay.rebuilt_prompt import Rebuilt
from bot.operations.replay.rerun import NoSuchTurn, Rerun, ask_again, read_turn, rebuilt
from bot.operations.replay.turn_record import RecordedTurn
from bot.queue.connections import database_url, require_migrated
from bot.queue.inbox import QueueUnavailable
from bot.settings import EXIT_STATUS, Settings, load_existing
from scripts.operating.arguments import FINDINGS, add_language, language, parser, run_script
from scripts.operating.console import Screen, print_json, run
from scripts.operating.questions import script_user
from scripts.replaying.cases import case_of
from scripts.replaying.difference import lines_of, tools_of, visible
from scripts.replaying.options import model_name, text_of, with_model


def main() -> int:
    return run(_work, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("replay", __doc__)
    options.add_argument("turn", metavar="TURN", help="of the question's message, or of a card")
    options.add_argument("--model", metavar="M", help="instead of OPENAI_MODEL")
    options.add_argument("--instructions", type=Path, metavar="FILE", help="for BOT_INSTRUCTIONS")
    options.add_argument("--prompt", action="store_true", help="show the prompt, ask nothing")
    options.add_argument("--export", type=Path, metavar="FILE", help="append it as a test case")
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


async def _work(given: argparse.Namespace) -> int:
    settings = _changed(load_existing(), given)
    url = database_url(settings)
    try:
        require_migrated(url)
        turn, known = read_turn(url, given.turn, script_user())
    except NoSuchTurn:
        print(f"{given.turn}: {NoSuchTurn.__doc__}", file=sys.stderr)
        return FINDINGS
    except psycopg.Error as exc:
        raise QueueUnavailable(f"{type(exc).__name__}: check DATABASE_URL") from exc
    if given.prompt or given.export:
        again = await rebuilt(settings, url, turn, known)
        return (
            _export(given.export, turn, dict(known), again)
            if given.export
            else _prompt(given, again)
        )
    try:
        prompt, new = await ask_again(settings, url, turn, known, TOOLS)
    except ModelUnavailable as exc:
        print(f"the model gave no answer: {exc.reason}", file=sys.stderr)
        return EXIT_STATUS
    _show(given, settings, turn, known, prompt, new)
    return 0


def _changed(settings: Settings, given: argparse.Namespace) -> Settings:
    settings = with_model(settings, given.model)
    if not given.instructions:
        return settings
    return replace(settings, bot_instructions=text_of(given.instructions))


def _prompt(given: argparse.Namespace, again: Rebuilt) -> int:
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


def _export(file: Path, turn: RecordedTurn, known: dict[str, str], again: Rebuilt) -> int:
    facts = {"turn": turn.id, "model": turn.record.get("model"), "tools": tools_of(turn.tool_calls)}
    case = case_of(turn.id, again.prompt, visible(turn.answer, known), facts)
    try:
        new = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(new, "a", encoding="utf-8") as out:
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
    except OSError as exc:
        print(f"{file} cannot be written: {exc.strerror}", file=sys.stderr)
        return EXIT_STATUS
    print(f"{turn.id}: added to {file}; say in it what you expect, then scripts/evaluate {file}")
    return 0


def _show(
    given: argparse.Namespace,
    settings: Settings,
    turn: RecordedTurn,
    known: list[tuple[str, str]],
    prompt: Rebuilt,
    new: Rerun,
) -> None:
    before, after = turn.record, new.answer
    changed = lines_of(visible(turn.answer, dict(known)), after.text)
    compared = [
        ("model", before.get("model"), model_name(settings)),
        ("tools", ", ".join(tools_of(turn.tool_calls)), ", ".join(tools_of(after.tool_calls))),
        ("tokens in", before.get("tokens_in"), after.input_tokens),
        ("tokens out", before.get("tokens_out"), after.output_tokens),
        ("model, s", _seconds(before.get("model_ms")), round(new.seconds, 2)),
    ]
    if given.json:
        print_json({
            "turn": turn.id, "question": turn.question,
            "before": visible(turn.answer, dict(known)), "after": after.text,
            "difference": changed, "missing": [one.en for one in prompt.missing],
            "compared": {name: {"before": was, "after": now} for name, was, now in compared},
        })  # fmt: skip
        return
    screen = Screen(language(given.lang))
    for one in prompt.missing:
        screen.say(one.said(language(given.lang)), style="yellow")
    screen.table(f"Turn {turn.id}", ("what", "as it was", "as it would be"), compared)
    print("\n".join(changed) if changed else "the same answer")


def _seconds(ms: object) -> float | None:
    return round(ms / 1000, 2) if isinstance(ms, int | float) else None


if __name__ == "__main__":
    run_script(main)
