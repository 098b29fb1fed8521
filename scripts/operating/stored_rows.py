"""Whether what is stored is as it must be, and is what Feishu shows. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from bot.feishu.models import RawMessage, is_same_text, shown_text
from bot.feishu.other_events import CommentReply, is_said
from bot.text.slash_commands import CommandName, parse_command
from memory.models import Conversation
from memory.scope import conversation_id
from memory.tables.operations import CheckedTurn, Orphan, Table, Unplaced
from scripts.operating.words import counted

# An open_id for the chat: a place of the person alone, such as that of a private answer. `doc`: a
# thread of comments in a document.
_ID = re.compile(r"feishu:((oc|ou)_[\w-]+:(om_[\w-]+|main)|doc:\w+:\d+)")
_PERSON = re.compile(r"ou_[\w-]+")
_MENTIONS = re.compile(r"^(?:@\S+\s+)+")
_PENDING_LIMIT = timedelta(minutes=1)
# Twelve attempts with their pauses take about eight minutes; then nobody works on it any more.
_ANSWER_LIMIT = timedelta(minutes=15)

_NEXT_STEPS = {
    "id format": "another program wrote it: scripts/memory forget --conversation deletes it",
    "sequence": "scripts/check_memory --conversation … --messages shows it, scripts/queue list says"
    " what was given up",
    "delivery": "scripts/queue list says why it waits; if it was given up, retry sends it and drop"
    " deletes it",
    "orphans": "something else deleted what it hung on: restore the latest backup, or delete the"
    " row",
    "audience": "stop the bot: people may read what is not for them; restore the latest backup, or"
    " delete the rows",
    "row-level security": "stop the bot, switch it on as sql/schema.sql has it, start the bot",
    "isolation": "stop the bot: compare policies and functions with sql/schema.sql",
    "sent text": "the card was changed outside of the bot: take it back in Feishu, or correct what"
    " is stored in the console",
}
_UNDER_WAY = ("open", "pending")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be: which check saw it, where, what it is."""

    check: str
    where: str
    problem: str

    @property
    def next_step(self) -> str:
        """What an operator does about it."""
        return _NEXT_STEPS[self.check]


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
    rows: Sequence[Row], now: datetime, turns: Mapping[str, CheckedTurn]
) -> list[Finding]:
    """The messages of one conversation of one person, in order; `turns` says what became of theirs.

    Each turn is one question and then its cards, without what was taken back. Questions that people
    wrote come turn after turn, but for those that stop another. What was sent has a message_id, and
    nothing waits for long.
    """
    found: list[Finding] = []
    whole: dict[str, list[Row]] = {}
    for row in rows:
        whole.setdefault(str(row["turn_id"]), []).append(row)
    for turn_id, turn in whole.items():
        if problem := _problem(turn, turns.get(turn_id, CheckedTurn()), now):
            found.append(Finding("sequence", turn_id, problem))
    found += _check_order(rows, turns)
    for row in rows:
        found += _check_delivery(row, now)
    return found


def _problem(turn: Sequence[Row], what: CheckedTurn, now: datetime) -> str:
    """What is not as it must be with the messages of a turn; "": nothing."""
    if not _is_sequence(turn, what):
        return f"its messages are {sequence(turn)}"
    if what.state in _UNDER_WAY and _is_unanswered(turn, now):
        return "the question was never answered"
    return ""


def _check_order(rows: Sequence[Row], turns: Mapping[str, CheckedTurn]) -> list[Finding]:
    """Turns that wait for each other, but have others of them between their messages."""
    waited = [
        row for row in rows if turns.get(str(row["turn_id"]), CheckedTurn()).origin == "message"
    ]
    stopping = {row["turn_id"] for row in waited if row["role"] == "user" and _stops(row)}
    order = [turn_id for turn_id, _ in groupby(
        str(row["turn_id"]) for row in waited if row["turn_id"] not in stopping
    )]  # fmt: skip
    again = [turn_id for turn_id, times in Counter(order).items() if times > 1]
    return [Finding("sequence", one, "another turn stands between its messages") for one in again]


def _stops(question: Row) -> bool:
    """Whether it ends an answer, and so is not kept waiting by it."""
    command = parse_command(_MENTIONS.sub("", question["content"]))
    return command is not None and command.name == CommandName.STOP


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
        Finding("audience", one.table, f"{counted(one.rows, 'row')}: {one.problem}")
        for one in unplaced
        if one.shown
    ]


def check_orphans(orphans: Iterable[Orphan]) -> list[Finding]:
    return [Finding("orphans", f"{o.table} {o.id}", o.problem) for o in orphans]


def _is_sequence(turn: Sequence[Row], what: CheckedTurn) -> bool:
    roles = [row["role"] for row in turn]
    cards = [row["chunk"] for row in turn if row["role"] == "assistant"]
    questions = roles.count("user")
    in_order = roles == ["user"] * questions + ["assistant"] * len(cards)
    complete = cards == list(range(len(cards))) or (what.answer_gone and cards == sorted(cards))
    return in_order and complete and (questions == 1 or (questions == 0 and what.question_gone))


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


def difference(stored: str, messages: list[RawMessage]) -> str | None:
    """What is wrong with a sent card, or None when it shows what is `stored`."""
    if not messages:
        return "Feishu does not know the message"
    message = messages[0]
    if message.deleted:
        return None  # taken back in Feishu; there is nothing left to compare
    shown = shown_text(message)
    if shown is None:
        return f"Feishu gives no text of it ({message.message_type}), so it cannot be compared"
    if is_same_text(shown, stored):
        return None
    return f"Feishu shows {len(shown)} characters that differ from the {len(stored)} stored"


def commented_otherwise(stored: str, reply: CommentReply | None) -> str | None:
    """The same of an answer in a comment; one that was deleted, or stands on the whole document,
    is not compared."""
    if reply is None or is_said(reply, stored):
        return None
    return "the comment in Feishu differs from what is stored"


def is_verifiable(row: Mapping[str, Any]) -> bool:
    """Whether a stored row is a card that was sent."""
    return bool(row["role"] == "assistant" and row["status"] == "sent" and row["message_id"])
