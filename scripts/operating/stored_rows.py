"""Whether what is stored is as it must be. Pure: it judges rows that the operators' calls gave."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from memory.kept.operations import Orphan, Table, Unplaced
from memory.models import Conversation
from memory.scope import conversation_id

# An open_id for the chat: a place of the person alone, such as that of a private answer.
_ID = re.compile(r"feishu:(oc|ou)_[\w-]+:(om_[\w-]+|main)")
_PERSON = re.compile(r"ou_[\w-]+")
_PENDING_LIMIT = timedelta(minutes=1)
# Twelve attempts with their pauses take about eight minutes; then nobody works on it any more.
_ANSWER_LIMIT = timedelta(minutes=15)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be: which check saw it, where, what it is."""

    check: str
    where: str
    problem: str


def check_conversation(conversation: Conversation) -> list[Finding]:
    """The ids are `feishu:oc_…:om_…` (or `main`) and `ou_…`, and agree with the row's columns."""
    found = []
    where = f"{conversation.conversation_id} of {conversation.user_id}"
    if not _ID.fullmatch(conversation.conversation_id):
        found.append(Finding("id format", where, "the id is not feishu:oc_…:om_… or …:main"))
    elif conversation.conversation_id != conversation_id(
        conversation.chat_id, conversation.root_id
    ):
        found.append(Finding("id format", where, "the id does not name the row's chat and root"))
    if not _PERSON.fullmatch(conversation.user_id):
        found.append(Finding("id format", where, "the person is not an open_id (ou_…)"))
    return found


def check_messages(
    rows: Sequence[Row], now: datetime, recalled: Collection[str] = ()
) -> list[Finding]:
    """The messages of one conversation of one person, in order.

    Each turn is one question and then its cards, turn after turn; a question that was recalled
    (`recalled`) may be missing. What was sent has a message_id, and nothing waits for long.
    """
    found: list[Finding] = []
    seen: set[str] = set()
    for turn_id, group in groupby(rows, key=lambda row: str(row["turn_id"])):
        turn = list(group)
        if turn_id in seen:
            found.append(Finding("sequence", turn_id, "another turn stands between its messages"))
        elif not _is_sequence(turn, question_missing=turn_id in recalled):
            found.append(Finding("sequence", turn_id, f"its messages are {sequence(turn)}"))
        elif _is_unanswered(turn, now):
            found.append(Finding("sequence", turn_id, "the question was never answered"))
        seen.add(turn_id)
    for row in rows:
        found += _check_delivery(row, now)
    return found


def sequence(rows: Iterable[Row]) -> str:
    """The order of messages in short: Q a question, A a card, a … not sent yet, x failed."""
    marks = {"pending": "…", "failed": "x"}
    return "".join(
        ("Q" if row["role"] == "user" else "A") + marks.get(row["status"], "") for row in rows
    )


def check_tables(tables: Iterable[Table]) -> list[Finding]:
    """Every table is protected, by row-level security and at least one policy."""
    found = []
    for table in tables:
        if not table.rls:
            found.append(Finding("row-level security", table.table, "it is switched off"))
        elif not table.policies:
            found.append(Finding("row-level security", table.table, "the table has no policy"))
    return found


def check_places(unplaced: Iterable[Unplaced]) -> list[Finding]:
    """Every row that is shown to anybody says truly who may read it."""
    return [
        Finding("audience", one.table, f"{one.rows} rows: {one.problem}")
        for one in unplaced
        if one.shown
    ]


def check_orphans(orphans: Iterable[Orphan]) -> list[Finding]:
    return [Finding("orphans", f"{o.table} {o.id}", o.problem) for o in orphans]


def _is_sequence(turn: Sequence[Row], *, question_missing: bool) -> bool:
    roles = [row["role"] for row in turn]
    cards = [row["chunk"] for row in turn if row["role"] == "assistant"]
    questions = roles.count("user")
    in_order = roles == ["user"] * questions + ["assistant"] * len(cards)
    complete = cards == list(range(len(cards)))
    return in_order and complete and (questions == 1 or (questions == 0 and question_missing))


def _is_unanswered(turn: Sequence[Row], now: datetime) -> bool:
    return len(turn) == 1 and _age(turn[0], now) > _ANSWER_LIMIT and turn[0]["role"] == "user"


def _check_delivery(row: Row, now: datetime) -> list[Finding]:
    if row["role"] != "assistant":
        return []
    where = f"{row['turn_id']} card {row['chunk']}"
    if row["status"] == "sent" and not row["message_id"]:
        return [Finding("delivery", where, "it is marked sent without a message_id")]
    if row["status"] == "pending" and _age(row, now) > _PENDING_LIMIT:
        minutes = _age(row, now).total_seconds() / 60
        return [Finding("delivery", where, f"it has been pending for {minutes:.0f} min")]
    return []


def _age(row: Row, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(row["updated_at"])
