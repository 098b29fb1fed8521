"""Many rows in every table, as copies of those that the attack matrix is tried with."""

from __future__ import annotations

import psycopg
from psycopg import sql

# Of a unique key, the column that makes a copy another row: the first of these that is in it.
_TELLS_APART = (
    "id message_id turn_id note_id button_id card_id mark open_id operator_id group_id "
    "until_message_id conversation_id user_id chat_id"
).split()

_UNIQUE = """
    select array_agg(a.attname::text order by a.attnum)
    from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indrelid = %(table)s::regclass and i.indisunique and a.attgenerated = ''
    group by i.indexrelid
    union all  -- one that excludes rows may be of an expression
    select array_agg(a.attname::text order by a.attnum)
    from pg_index i join pg_depend d on d.objid = i.indexrelid
    join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where i.indrelid = %(table)s::regclass and d.refobjid = i.indrelid and i.indisexclusion
    group by i.indexrelid
"""
_COLUMNS = """
    select a.attname::text, format_type(a.atttypid, null) from pg_attribute a
    where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    order by a.attnum
"""


def copy_rows(connection: psycopg.Connection, table: str, count: int) -> None:
    """`count` copies of a row of the table, without triggers and checks of foreign keys."""
    name = f"public.{table}"
    varied = {"root_id"} | {  # a conversation is named by its root
        next((one for one in _TELLS_APART if one in key), "")
        for (key,) in connection.execute(_UNIQUE, {"table": name}).fetchall()
    }
    columns = connection.execute(_COLUMNS, [name]).fetchall()
    in_chats = any(column == "chat_id" for column, _ in columns)
    values = [_copied(column, type_, column in varied, in_chats) for column, type_ in columns]
    with connection.transaction():
        connection.execute("set local session_replication_role = replica")
        connection.execute(
            sql.SQL(
                "insert into public.{table} ({columns}) overriding system value select {values}"
                " from (select * from public.{table} limit 1) r, generate_series(1, %s) n"
                " on conflict do nothing"
            ).format(
                table=sql.Identifier(table),
                columns=sql.SQL(", ").join(sql.Identifier(column) for column, _ in columns),
                values=sql.SQL(", ").join(values),
            ),
            [count],
        )
    connection.execute(sql.SQL("analyze {}").format(sql.Identifier("public", table)))


def _copied(column: str, type_: str, varied: bool, in_chats: bool) -> sql.Composable:
    """In one of fifty chats, of one of fifty people."""
    value: sql.Composable = sql.Identifier("r", column)
    if varied and type_ != "text":
        return sql.SQL("case when {} < 0 then -n else n end").format(
            value
        )  # some ids are below zero
    if in_chats and column in ("id", "conversation_id", "chat_id") and type_ == "text":
        value = sql.SQL("replace({}, r.chat_id, r.chat_id || '_' || n %% 50)").format(value)
    elif column in ("user_id", "actor_id", "operator_id", "open_id"):
        value = sql.SQL("{} || '_' || n %% 50").format(value)
    return sql.SQL("{} || '_' || n").format(value) if varied else value
