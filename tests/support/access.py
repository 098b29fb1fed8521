"""A case of row-level security: a row, and who may do what with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from tests.support.actors import BOB, OTHER_TENANT

Row = Mapping[str, object]

SENDER = "<whoever writes>"


@dataclass(frozen=True, slots=True)
class Case:
    """Alice's `row`, a `new` one to insert, and the names in `ACTORS` that may do an operation.

    `change` is an update that whoever may update can make; `gifts` are updates that nobody but the
    service can make, because the row would change hands. A row that is not `seeded` is put there
    by a trigger. `SENDER` as a value stands for whoever writes.
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
    seeded: bool = True

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
