"""Who may do what with Alice's rows, table by table.

A table of schema `public` without a case here fails the build. To add one, append a `Case`: a row
of Alice's in the chat `HERE`, a second row that could be inserted, and who may do what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql
from psycopg.types.json import Jsonb

from tests.support.actors import ALICE, BOB, HERE, OTHER_TENANT, TENANT

Row = Mapping[str, object]

SENDER = "<whoever writes>"
CONVERSATION = f"feishu:{HERE}:om_root"
TURN = "om_question"

SERVICE = frozenset({"service"})
SUBJECT = SERVICE | {"subject here", "subject elsewhere"}
TURN_OF_SUBJECT = SUBJECT | {"sender here"}


@dataclass(frozen=True, slots=True)
class Case:
    """Alice's `row`, a `new` one beside it, and the names in `ACTORS` that may do an operation.

    `change` is an update that whoever may update can make; `gifts` are updates that nobody but the
    service can make, because the row would change hands.
    """

    name: str
    table: str
    row: Row
    new: Row
    select: frozenset[str]
    insert: frozenset[str]
    update: frozenset[str]
    delete: frozenset[str]
    change: Row
    gifts: tuple[Row, ...] = ({"user_id": BOB}, {"tenant_key": OTHER_TENANT})

    def inserting(self, row: Row, sender: str) -> tuple[sql.Composed, list[object]]:
        """The statement that inserts `row`, written by `sender`."""
        statement = sql.SQL("insert into {} ({}) values ({})").format(
            self._table,
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        )
        return statement, [sender if value == SENDER else value for value in row.values()]

    def updating(self, change: Row) -> tuple[sql.Composed, list[object]]:
        """The statement that makes `change` to every row within reach that is Alice's."""
        assignments = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(column), sql.Placeholder())
            for column in change
        )
        statement = sql.SQL("update {} set {} where {}").format(
            self._table, assignments, self._is_this_row
        )
        return statement, list(change.values())

    @property
    def selecting(self) -> sql.Composed:
        return sql.SQL("select from {} where {}").format(self._table, self._is_this_row)

    @property
    def deleting(self) -> sql.Composed:
        return sql.SQL("delete from {} where {}").format(self._table, self._is_this_row)

    @property
    def _table(self) -> sql.Identifier:
        return sql.Identifier("public", self.table)

    @property
    def _is_this_row(self) -> sql.Composed:
        keys = {k: v for k, v in self.row.items() if isinstance(v, str)}
        return sql.SQL(" and ").join(
            sql.SQL("{} = {}").format(sql.Identifier(column), sql.Literal(value))
            for column, value in keys.items()
        )


_ALICE_HERE = {
    "conversation_id": CONVERSATION,
    "user_id": ALICE,
    "tenant_key": TENANT,
    "chat_id": HERE,
}

CASES: list[Case] = [
    Case(
        name="agent_chats",
        table="agent_chats",
        row={
            "id": CONVERSATION,
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_root",
        },
        new={
            "id": f"feishu:{HERE}:om_new",
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_new",
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SUBJECT,
        change={"title": "changed"},
    ),
    Case(
        name="agent_turns",
        table="agent_turns",
        row={"id": TURN, **_ALICE_HERE, "actor_id": ALICE},
        new={"id": "om_new", **_ALICE_HERE, "actor_id": SENDER},
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SUBJECT,
        change={"state": "failed"},
    ),
    Case(
        name="agent_messages, a question",
        table="agent_messages",
        row={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "user",
            "content": "my secret",
            "actor_id": ALICE,
            "status": "received",
        },
        new={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "user",
            "chunk": 1,
            "content": "another",
            "actor_id": SENDER,
            "status": "received",
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SUBJECT,
        change={"error": "changed"},
    ),
    Case(
        name="agent_messages, an answer",
        table="agent_messages",
        row={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "assistant",
            "content": "your secret",
            "status": "sent",
        },
        new={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "assistant",
            "chunk": 1,
            "content": "another",
            "status": "pending",
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SUBJECT,
        change={"status": "failed"},
    ),
    Case(
        name="agent_working_memory, of a conversation",
        table="agent_working_memory",
        row={**_ALICE_HERE, "scope": "chat", "content": Jsonb({"topic": "secret"})},
        new={
            **_ALICE_HERE,
            "conversation_id": f"feishu:{HERE}:om_new",
            "scope": "chat",
            "content": Jsonb({}),
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SUBJECT,
        change={"content": Jsonb({"topic": "changed"})},
        gifts=({"user_id": BOB}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="agent_working_memory, of a person",
        table="agent_working_memory",
        row={
            "user_id": ALICE,
            "tenant_key": TENANT,
            "scope": "user",
            "content": Jsonb({"salary": 1}),
        },
        # Bob stands in for a person of whom nothing is stored yet: Alice has her one row already.
        new={"user_id": BOB, "tenant_key": TENANT, "scope": "user", "content": Jsonb({})},
        select=SUBJECT,
        insert=SERVICE
        | {
            "other user",
            "other user elsewhere",
            "other user who claims to be the service",
        },
        update=SUBJECT,
        delete=SUBJECT,
        change={"content": Jsonb({"salary": 2})},
    ),
]
