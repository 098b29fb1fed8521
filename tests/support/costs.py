"""What one call or one statement of somebody with a token costs the database.

Time is the processor's: on a machine that does other things the clock says little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

LARGEST = 4_000_000  # bytes; of an argument that no limit is known of

# Runs a call with the texts as $1, $2 … and undoes it.
TRY_CALL = """
    create table public.hostile_texts (place serial, body text);
    grant select on public.hostile_texts to authenticated;
    create function public.try_call(p_call text) returns void language plpgsql as $$
    declare
      v constant text[] := array(select body from public.hostile_texts order by place);
      v1 constant text := v[1]; v2 constant text := v[2]; v3 constant text := v[3];
      v4 constant text := v[4]; v5 constant text := v[5]; v6 constant text := v[6];
      v7 constant text := v[7]; v8 constant text := v[8]; v9 constant text := v[9];
      v10 constant text := v[10]; v11 constant text := v[11]; v12 constant text := v[12];
    begin
      begin
        execute p_call using v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12;
        raise exception 'undone';
      exception when others then null;
      end;
    end
    $$;
    grant execute on function public.try_call to authenticated
"""
# What a signed-in user can call over the API, with the names and types of the arguments.
_CALLABLE = """
    select p.proname, coalesce(p.proargnames[:p.pronargs], '{}'),
           array(select format_type(t, null) from unnest(p.proargtypes) t), p.prosrc
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
      and has_function_privilege('authenticated', p.oid, 'execute') and p.pronargs > 0
      and p.proname <> 'try_call'
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by 1
"""
_LIMIT = re.compile(r"require_size\('(p_\w+)', p_\w+, (\d+)\)")
SCALARS: Mapping[str, str] = {
    "integer": "2000000000",
    "bigint": "2000000000",
    "boolean": "true",
    "double precision": "1",
    "timestamp with time zone": "'2026-03-03'",
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its arguments with their types, and the bytes that it takes of each."""

    name: str
    arguments: Mapping[str, str]
    limits: Mapping[str, int]

    def call(self, known: Mapping[str, str], sizes: Sequence[int]) -> str:
        """A call with what is `known`, and a hostile text wherever else a text is taken: of those
        of these `sizes`, in rising order, the largest that the function takes."""
        named = [
            f"{name} => {self._value(name, type_, known, sizes)}"
            for name, type_ in self.arguments.items()
        ]
        return f"select public.{self.name}({', '.join(named)})"

    def _value(self, name: str, type_: str, known: Mapping[str, str], sizes: Sequence[int]) -> str:
        if name in known:
            return f"'{known[name]}'"
        if type_ in SCALARS:
            return SCALARS[type_]
        limit = self.limits.get(name, max(sizes))
        place = max((n for n, size in enumerate(sizes) if size <= limit), default=0)
        return f"${place + 1}::{type_}"


def callable_functions(connection: psycopg.Connection) -> list[Function]:
    """All that a token may call and that takes an argument."""
    return [
        Function(
            name,
            dict(zip(names, types, strict=True)),
            {argument: int(limit) for argument, limit in _LIMIT.findall(source)},
        )
        for name, names, types, source in connection.execute(_CALLABLE.encode()).fetchall()
    ]


def become(connection: psycopg.Connection, claims: Mapping[str, str]) -> None:
    """For the rest of the transaction."""
    connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
    connection.execute("set local role authenticated")


def give_texts(connection: psycopg.Connection, texts: Sequence[str]) -> None:
    """The texts of the next calls."""
    connection.execute("truncate public.hostile_texts")
    for text in texts:
        connection.execute("insert into public.hostile_texts (body) values (%s)", [text])


def time_call(
    connection: psycopg.Connection, claims: Mapping[str, str], call: str, most_ms: int = 5000
) -> float:
    """Milliseconds of a call, refused or not; one that is not over after `most_ms` of the clock is
    cancelled."""
    with connection.transaction(force_rollback=True):
        become(connection, claims)
        connection.execute(f"set local statement_timeout = {most_ms}".encode())
        begun = _processor_ms(connection)
        try:
            connection.execute("select public.try_call(%s)", [call])
        except psycopg.errors.QueryCanceled:
            return float(most_ms)
        return _processor_ms(connection) - begun


def _processor_ms(connection: psycopg.Connection) -> float:
    """What the server's process for this connection has used. Linux: sched-stats, nanoseconds."""
    numbers = Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text()
    return int(numbers.split()[0]) / 1e6


def plan_of(
    connection: psycopg.Connection, claims: Mapping[str, str], statement: sql.Composed
) -> tuple[float, set[str]]:
    """Milliseconds that a statement takes, and the tables whose rows it reads one by one."""
    with connection.transaction(force_rollback=True):
        become(connection, claims)
        row = connection.execute(
            sql.SQL("explain (analyze, format json) {}").format(statement)
        ).fetchone()
    [plan] = row[0] if row else []
    return plan["Execution Time"], {
        str(node["Relation Name"])
        for node in _nodes(plan["Plan"])
        if node["Node Type"] == "Seq Scan" and node["Actual Loops"] > 0
    }


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
