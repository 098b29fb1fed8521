"""What the bot gave up: look at it, try it again, drop it; and what waits or is under way.

A card that says that something went wrong names a job, such as J12. What people wrote is never
shown.

Examples:
  scripts/queue list                        what was given up, latest first; what waits
  scripts/queue show J12                    one of them, and what happened to it
  scripts/queue retry J12 J15               tries them again; who asked gets an answer
  scripts/queue retry --all                 after the cause is mended
  scripts/queue retry J12 --not-sent        of OutcomeUnknown: its card is not in the chat, send it
  scripts/queue drop J12                    deletes it, after a question; --yes does not ask
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from bot.queue.operator_actions import Failed, QueueOperations, Reference, Unfinished
from bot.settings import EXIT_STATUS, load_existing
from bot.text.languages import Sentence
from scripts.operating.arguments import add_language, add_limit, in_language, language, run_script
from scripts.operating.console import FINDINGS, Screen, parser, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk

_MOST = 10_000


def main() -> int:
    return run(_work, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("queue", __doc__)
    commands = options.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="what was given up, and what waits")
    add_limit(listing, 100)
    showing = commands.add_parser("show", help="one of them, and what happened to it")
    showing.add_argument("references", type=_reference, nargs=1, metavar="REFERENCE")
    for name, help in (("retry", "try them again"), ("drop", "delete them for good")):
        command = commands.add_parser(name, help=help)
        command.add_argument("references", type=_reference, nargs="*", metavar="REFERENCE")
        command.add_argument("--all", action="store_true", help="everything that is listed")
    commands.choices["retry"].add_argument(
        "--not-sent", action="store_true", help="you have looked: its card is not in the chat"
    )
    commands.choices["drop"].add_argument("--yes", action="store_true", help="do not ask")
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="one JSON document")
        add_language(command)
    return options.parse_args()


def _reference(text: str) -> Reference:
    try:
        return Reference.parse(text)
    except ValueError as exc:
        zh = f"{text!r} 不是编号：应为列出的 J12 或 om_…"
        raise argparse.ArgumentTypeError(in_language(str(exc), zh)) from exc


async def _work(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        match given.command:
            case "list":
                return _list(desk, given)
            case "show":
                return _show(desk, given)
            case "retry":
                act = partial(desk.queue.retry, not_sent=given.not_sent)
                return _each(desk.queue, given, act, "retried")
            case _:
                return await _drop(desk, given)


def _list(desk: OperatorDesk, given: argparse.Namespace) -> int:
    given_up = desk.queue.failed(limit=given.limit)
    unfinished = desk.queue.unfinished_jobs(limit=given.limit)
    if given.json:
        rows = [_row(one) for one in unfinished]
        print_json({"failed": [_row(one) for one in given_up], "unfinished": rows})
        return 0
    screen = _screen(desk, given)
    screen.table("Given up", _COLUMNS, [_cells(desk, screen, one) for one in given_up])
    if unfinished:
        rows_shown = [_unfinished_cells(desk, screen, one) for one in unfinished]
        screen.table("Waiting or under way", _UNFINISHED_COLUMNS, rows_shown)
    return 0


_COLUMNS = ("reference", "failed", "why", "attempts", "conversation", "message", "person", "told")
_UNFINISHED_COLUMNS = ("reference", "since", "state", "why", "attempts", "conversation", "message")


def _screen(desk: OperatorDesk, given: argparse.Namespace) -> Screen:
    return Screen(language(given.lang), desk.names_of)


def _cells(desk: OperatorDesk, screen: Screen, one: Failed) -> Sequence[object]:
    return (
        str(one.reference),
        desk.shown(one.failed_at, timespec="seconds"),
        one.reason,
        one.attempts,
        one.conversation_id,
        one.message_id,
        one.person,
        screen.said("yes" if one.excused else "no"),
    )


def _unfinished_cells(desk: OperatorDesk, screen: Screen, one: Unfinished) -> Sequence[object]:
    return (
        str(one.reference),
        desk.shown(one.since, timespec="seconds"),
        screen.said("under way" if one.running else "waiting"),
        one.reason,
        one.attempts,
        one.conversation_id,
        one.message_id,
    )


def _show(desk: OperatorDesk, given: argparse.Namespace) -> int:
    [wanted] = given.references
    found: list[Failed] | list[Unfinished] = desk.queue.failed(wanted)
    if not found:
        unfinished = desk.queue.unfinished_jobs(limit=_MOST)
        found = [one for one in unfinished if one.reference == wanted]
    if not found:
        return _missing([wanted], given)
    events = desk.queue.events(wanted.id) if wanted.kind == "J" else []
    if given.json:
        print_json({**_row(found[0]), "events": events})
        return 0
    screen = _screen(desk, given)
    fields = [(screen.said(name), value) for name, value in _row(found[0]).items()]
    screen.table(str(wanted), ("field", "value"), fields)
    happened = [
        (desk.shown(event["at"], timespec="seconds"), screen.said(event["type"]))
        for event in events
    ]
    screen.table("What happened", ("time", "what"), happened)
    return 0


async def _drop(desk: OperatorDesk, given: argparse.Namespace) -> int:
    wanted = _wanted(desk.queue, given)
    if not wanted:
        return _nothing(given)
    if not given.yes and not await _confirmed(len(wanted), given):
        _complain(given, "nothing was deleted", "没有删除任何内容")
        return FINDINGS
    return _each(desk.queue, given, desk.queue.drop, "dropped")


def _each(
    queue: QueueOperations,
    given: argparse.Namespace,
    act: Callable[[Reference], bool],
    done: str,
) -> int:
    wanted = _wanted(queue, given)
    if not wanted:
        return _nothing(given)
    met = {one: act(one) for one in wanted}
    acted = [str(one) for one, there in met.items() if there]
    if given.json:
        print_json({done: acted})
    else:
        screen = Screen(language(given.lang))
        colon = "：" if language(given.lang) == "zh" else ": "
        print(f"{screen.said(done)}{colon}{', '.join(acted) or screen.said('none')}")
    missing = [one for one, there in met.items() if not there]
    return _missing(missing, given) if missing else 0


def _wanted(queue: QueueOperations, given: argparse.Namespace) -> list[Reference]:
    if given.all:
        return [one.reference for one in queue.failed(limit=_MOST)]
    wanted: list[Reference] = given.references
    return wanted


def _nothing(given: argparse.Namespace) -> int:
    if given.all:
        _complain(given, "nothing was given up", "没有已放弃的任务")
        return 0
    _complain(
        given,
        f"queue {given.command}: give references such as J12, or --all",
        f"queue {given.command}：请给出编号（如 J12），或使用 --all",
    )
    return EXIT_STATUS


async def _confirmed(count: int, given: argparse.Namespace) -> bool:
    if not sys.stdin.isatty():
        _complain(
            given,
            f"this would delete {count} for good: add --yes to do it",
            f"这将彻底删除 {count} 项：确认请加 --yes",
        )
        return False
    question = Sentence(
        f"Delete {count} for good? Type yes: ", f"彻底删除 {count} 项？请输入 yes："
    )
    answer = await asyncio.to_thread(input, question.said(language(given.lang)))
    return answer.strip().lower() == "yes"


def _missing(references: Sequence[Reference], given: argparse.Namespace) -> int:
    names = ", ".join(map(str, references))
    _complain(
        given,
        f"{names}: not among what was given up; see scripts/queue list",
        f"{names}：不在已放弃的任务中，请看 scripts/queue list",
    )
    return FINDINGS


def _complain(given: argparse.Namespace, en: str, zh: str) -> None:
    print(Sentence(en, zh).said(language(given.lang)), file=sys.stderr)


def _row(one: Failed | Unfinished) -> dict[str, object]:
    return {"reference": str(one.reference), **asdict(one)}


if __name__ == "__main__":
    run_script(main)
