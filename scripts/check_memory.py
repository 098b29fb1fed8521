"""Checks that the memory is as it must be, then lists what it holds. Status 1 on findings.

Checked: the form of ids, question and answer in turn, orphan rows, sent cards without a message id,
cards that wait for more than a minute, tables without row-level security or policies, and with two
made-up people that nobody is given what was said where they do not read. Rows of earlier versions
whose author is not known are shown to nobody and listed. The memory is the configured one.

Examples:
  scripts/check_memory                              everything, the latest 100 conversations
  scripts/check_memory --chat oc_a1b2 --since 7d    of one group, lately
  scripts/check_memory --person ou_c3d4 --messages  with every message of one person
  scripts/check_memory --verify-sent                also asks Feishu what the cards show
  scripts/check_memory --json | jq .findings        for other programs
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.feishu import markup
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from bot.feishu.other_events import place_of_comment_key
from bot.operations.doctor.database import probe_isolation
from bot.settings import load_existing
from bot.text.languages import Sentence
from memory.models import Conversation
from memory.scope import is_document_chat, split_conversation_id
from memory.tables.operations import Table, Unplaced
from scripts.operating import stored_rows
from scripts.operating.arguments import (
    FINDINGS,
    add_language,
    add_limit,
    language,
    parser,
    run_script,
)
from scripts.operating.console import Screen, moment, print_json, progress, run
from scripts.operating.desk import OperatorDesk, open_desk, person_meant
from scripts.operating.stored_rows import Finding, commented_otherwise, difference, is_verifiable
from scripts.operating.words import counted

_MESSAGES_READ = 2000
_SEQUENCE_SHOWN = 40
_TEXT_SHOWN = 60

Row = Mapping[str, Any]


@dataclass
class CheckResult:
    """What was seen and found; `skipped` says which checks were not made, and why. `leaks` is None
    where isolation was not probed. `unstored` turns wait until the memory can take them."""

    backend: str
    conversations: list[tuple[Conversation, Sequence[Row]]] = field(default_factory=list)
    tables: tuple[Table, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    withheld: tuple[Unplaced, ...] = ()
    leaks: int | None = None
    unstored: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def main() -> int:
    return run(_check, arguments().parse_args())


def arguments() -> argparse.ArgumentParser:
    options = parser("check_memory", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="conversations of this chat")
    options.add_argument("--conversation", metavar="ID", help="this conversation")
    options.add_argument("--person", metavar="WHO", help="of this person: id or name")
    options.add_argument("--since", type=moment, metavar="TIME", help="30m, 2h, 7d, or a date")
    add_limit(options, 100)
    options.add_argument("--messages", action="store_true", help="list the messages, too")
    options.add_argument("--verify-sent", action="store_true", help="compare with Feishu")
    options.add_argument("--no-probe", action="store_true", help="write nothing, not even briefly")
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options


async def _check(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        if given.person:
            given.person = await person_meant(desk, given.person)
        outcome = await examine(desk, given)
    if given.json:
        print_json(_document(outcome))
    else:
        screen = Screen(language(given.lang), desk.names_of)
        _show(desk, outcome, screen, messages=given.messages)
    return FINDINGS if outcome.findings else 0


async def examine(
    desk: OperatorDesk, given: argparse.Namespace, now: datetime | None = None
) -> CheckResult:
    """Everything that is checked; `now` is when, for what may wait a while."""
    outcome = CheckResult(desk.backend)
    await _check_conversations(desk, given, outcome, now or datetime.now(UTC))
    await _check_tables(desk, outcome)
    await _check_isolation(desk, given, outcome)
    await _check_sent(desk, given, outcome)
    return outcome


async def _check_conversations(
    desk: OperatorDesk, given: argparse.Namespace, outcome: CheckResult, now: datetime
) -> None:
    conversations = await desk.memory.list_conversations(
        chat_id=given.chat,
        conversation_id=given.conversation,
        user_id=given.person,
        since=desk.since(given.since),
        limit=given.limit,
    )
    with progress("conversations", len(conversations)) as step:
        for conversation in conversations:
            rows = await desk.memory.list_messages(
                conversation.conversation_id, conversation.user_id, limit=_MESSAGES_READ
            )
            turns = await desk.operations.turns(sorted({row["turn_id"] for row in rows}))
            outcome.conversations.append((conversation, rows))
            outcome.findings += stored_rows.check_conversation(conversation)
            outcome.findings += stored_rows.check_messages(
                _whole_turns(rows, conversation.messages), now, turns
            )
            step()


def _whole_turns(rows: Sequence[Row], total: int) -> Sequence[Row]:
    """Of a conversation that was read in part, the first turn may lack its beginning."""
    if len(rows) == total or not rows:
        return rows
    return [row for row in rows if row["turn_id"] != rows[0]["turn_id"]]


async def _check_tables(desk: OperatorDesk, outcome: CheckResult) -> None:
    outcome.tables = await desk.operations.tables()
    outcome.unstored = desk.queue.depth().unstored
    outcome.findings += stored_rows.check_tables(outcome.tables)
    outcome.findings += stored_rows.check_orphans(await desk.operations.orphans())
    unplaced = await desk.operations.unplaced()
    outcome.findings += stored_rows.check_places(unplaced)
    outcome.withheld = tuple(one for one in unplaced if not one.shown)
    for name in desk.queue.unprotected_tables():
        problem = "it is switched off in the queue's schema"
        outcome.findings.append(Finding("row-level security", name, problem))


async def _check_isolation(
    desk: OperatorDesk, given: argparse.Namespace, outcome: CheckResult
) -> None:
    if given.no_probe:
        outcome.skipped["isolation"] = "--no-probe was given"
        return
    leaks = await probe_isolation(desk.rpc)
    outcome.leaks = len(leaks)
    for leak in leaks:
        outcome.findings.append(Finding("isolation", "live probe", leak))


async def _check_sent(desk: OperatorDesk, given: argparse.Namespace, outcome: CheckResult) -> None:
    """A failure of Feishu says nothing about the memory: the check is then skipped."""
    if not given.verify_sent:
        outcome.skipped["sent text"] = "--verify-sent was not given"
        return
    settings = desk.settings
    sent = [
        (one.conversation_id, row)
        for one, rows in outcome.conversations
        for row in rows
        if is_verifiable(row)
    ]
    feishu = FeishuClient(settings.domain, settings.feishu_app_id, settings.feishu_app_secret)
    try:
        with progress("messages in Feishu", len(sent)) as step:
            for conversation, row in sent:
                if problem := await _sent_otherwise(feishu, conversation, row):
                    outcome.findings.append(Finding("sent text", row["message_id"], problem))
                step()
    except FeishuFailure as exc:
        outcome.skipped["sent text"] = f"Feishu does not answer: {exc}"
    finally:
        await feishu.close()


async def _sent_otherwise(
    feishu: FeishuClient, conversation: str, row: Mapping[str, Any]
) -> str | None:
    """What is wrong with what Feishu shows of a sent row; None: nothing is."""
    key, (chat_id, _) = row["message_id"], split_conversation_id(conversation)
    if not is_document_chat(chat_id):
        return difference(row["content"], await feishu.get_message(key, user_card_content=True))
    place, reply_id = place_of_comment_key(key, chat_id)
    thread = await feishu.comments.thread(place)
    said = {one.reply_id: one for one in thread.replies} if thread else {}
    return commented_otherwise(row["content"], said.get(reply_id))


def _document(outcome: CheckResult) -> dict[str, object]:
    return {
        "backend": outcome.backend,
        "isolation": {None: "not checked", 0: "held"}.get(outcome.leaks, "broken"),
        "conversations": [
            {**_as_dict(conversation), "sequence": stored_rows.sequence(rows), "rows": rows}
            for conversation, rows in outcome.conversations
        ],
        "tables": outcome.tables,
        "findings": [{**asdict(one), "next_step": one.next_step} for one in outcome.findings],
        "withheld": outcome.withheld,
        "unstored": outcome.unstored,
        "skipped": outcome.skipped,
    }


def _as_dict(conversation: Conversation) -> dict[str, object]:
    return {name: getattr(conversation, name) for name in Conversation.__slots__}


def _show(desk: OperatorDesk, outcome: CheckResult, screen: Screen, *, messages: bool) -> None:
    """How it is, what is wrong, and then everything that was looked at."""
    _say_verdicts(screen, outcome)
    if outcome.findings:
        said = screen.said
        findings = [
            (said(f.check), f.where, said(f.problem), said(f.next_step)) for f in outcome.findings
        ]
        screen.table("Findings", ("check", "where", "what", "next step"), findings)
    if outcome.skipped:
        skipped = [(screen.said(check), screen.said(why)) for check, why in outcome.skipped.items()]
        screen.table("Not checked", ("check", "why"), skipped)
    columns: Sequence[str] = _CONVERSATION if screen.is_terminal else _CONVERSATION_WHOLE
    screen.table(
        "Conversations (Q question, A card, … pending, x failed)",
        columns,
        [_conversation_cells(desk, *entry, columns) for entry in reversed(outcome.conversations)],
    )
    if messages:
        columns = _MESSAGE if screen.is_terminal else _MESSAGE_WHOLE
        for conversation, rows in reversed(outcome.conversations):
            title = f"{conversation.conversation_id}: {conversation.user_id}"
            known = _addressed(desk, rows)
            cells = [_message_cells(desk, row, columns, known) for row in rows]
            screen.table(title, columns, cells)
    rls_off = screen.said("RLS is off")
    screen.table(
        "Tables",
        ("table", "rows", "24 h", "7 d", "size", "policies"),
        [
            (
                t.table,
                t.rows,
                t.day,
                t.week,
                _size(t.bytes),
                t.policies if t.rls else rls_off,
            )
            for t in outcome.tables
        ],
    )
    for one in outcome.withheld:
        withheld = Sentence(
            f"shown to nobody: {counted(one.rows, 'row')} of {one.table}: {one.problem}",
            f"不向任何人显示：{one.table} 的 {one.rows} 行，{screen.said(one.problem)}",
        )
        screen.say(withheld.said(screen.language))


def _say_verdicts(screen: Screen, outcome: CheckResult) -> None:
    leaks, wrong = outcome.leaks, len(outcome.findings)
    if leaks is None:
        probed = Sentence("not checked", "未检查")
    elif leaks:
        probed = Sentence(f"BROKEN, {counted(leaks, 'leak')}", f"失效，{leaks} 处泄漏")
    else:
        probed = Sentence("held", "有效")
    found = Sentence("no problems found", "没有发现问题")
    if wrong:
        found = Sentence(counted(wrong, "finding"), f"发现 {wrong} 个问题")
    screen.verdict("isolation", probed, good=not leaks)
    screen.verdict("memory", found, good=not wrong)
    if outcome.unstored:
        turns = counted(outcome.unstored, "turn")
        waits = Sentence(f"{turns} waiting", f"{outcome.unstored} 轮对话等待写入")
        screen.verdict("not stored yet", waits, good=False)
    screen.say(f"{outcome.backend}\n")


# A terminal of 80 columns holds less than another program is given.
_CONVERSATION = ("conversation", "person", "messages", "last", "sequence")
_CONVERSATION_WHOLE = ("conversation", "person", "messages", "first", "last", "sequence")
_MESSAGE = ("time", "role", "status", "message", "text")
_MESSAGE_WHOLE = ("id", "time", "role", "status", "turn", "message", "tools", "text")


def _conversation_cells(
    desk: OperatorDesk, conversation: Conversation, rows: Sequence[Row], columns: Sequence[str]
) -> Sequence[object]:
    shown = stored_rows.sequence(rows)
    cells: dict[str, object] = {
        "conversation": conversation.conversation_id,
        "person": conversation.user_id,
        "messages": conversation.messages,
        "first": desk.shown(conversation.first_at),
        "last": desk.shown(conversation.last_at),
        "sequence": shown if len(shown) <= _SEQUENCE_SHOWN else f"(…){shown[-_SEQUENCE_SHOWN:]}",
    }
    return [cells[column] for column in columns]


def _addressed(desk: OperatorDesk, rows: Sequence[Row]) -> Mapping[str, str]:
    """The names of those whom the cards address, by open_id."""
    found = {tag[1] for row in rows for tag in markup.AT_TAG.finditer(row["content"])}
    return {open_id: name.en for open_id, name in desk.names_of(found).items()}


def _message_cells(
    desk: OperatorDesk, row: Row, columns: Sequence[str], known: Mapping[str, str]
) -> Sequence[object]:
    text = markup.AT_TAG.sub(
        lambda tag: f"@{known[tag[1]]}" if tag[1] in known else tag[0], row["content"]
    )
    cells: dict[str, object] = {
        "id": row["id"],
        "time": desk.shown(row["created_at"]),
        "role": row["actor_name"] or row["role"],
        "status": row["status"],
        "turn": row["turn_id"],
        "message": row["message_id"],
        "tools": len(row["tool_calls"]) or None,
        "text": text if len(text) <= _TEXT_SHOWN else f"{text[:_TEXT_SHOWN]}…",
    }
    return [cells[column] for column in columns]


def _size(number: int) -> str:
    return f"{number / 1024:,.0f} KB" if number < 10 * 1024**2 else f"{number / 1024**2:,.0f} MB"


if __name__ == "__main__":
    run_script(main)
