"""What stands in the catalogue about the tables of a database, as SQL, table by table."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from lab.schema.expressions import WIDTH, bare, conditions, filled, lowered, readable

Row = dict[str, Any]
Parts = Mapping[str, list[Row]]

_SQL = Path(__file__).parent / "catalogue.sql"
_STORAGE = {"m": "main", "p": "plain", "e": "external", "x": "extended"}


def read(connection: psycopg.Connection) -> dict[str, dict[str, list[Row]]]:
    """Of each table or view, by name: the rows of each query of `catalogue.sql` about it."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for query in _SQL.read_text(encoding="utf-8").split(";\n"):
        kind, _, text = query.strip().partition("\n")
        with connection.cursor(row_factory=dict_row) as cursor:
            for row in cursor.execute(text.encode()) if text else ():
                found[row["table"]][kind.removeprefix("-- ")].append(row)
    return found


def in_order(parts: Mapping[str, Parts]) -> list[str]:
    """By name, each after those it refers to."""
    ordered: list[str] = []

    def add(name: str) -> None:
        if name not in ordered:
            for parent in parts[name]["relation"][0]["parents"]:
                add(parent)
            ordered.append(name)

    for name in sorted(parts, key=lambda name: (not name.startswith("public."), name)):
        add(name)
    return ordered


def written(parts: Parts, comments: Mapping[str, str]) -> str:
    """A table or a view with all that belongs to it."""
    relation = parts["relation"][0]
    about = comments.get(relation["table"], "")
    return "\n".join(
        [
            *_comment(about),
            _view(relation) if relation["view"] else _table(parts, comments),
            *(filled(f"{readable(row['definition'])};") for row in parts["index"]),
            *(_late(row) for row in parts["constraint"] if row["late"]),
            *([_guarded(relation)] if relation["guarded"] else []),
            *map(_policy, parts["policy"]),
            *_grants(relation["table"], parts["grant"]),
            *(_trigger(row) for row in parts["trigger"]),
        ]
    )


def _view(relation: Row) -> str:
    return f"create view {relation['table']}{_options(relation)} as\n{lowered(relation['view'])}"


def _options(relation: Row) -> str:
    return f" with ({', '.join(relation['options'])})" if relation["options"] else ""


def _table(parts: Parts, comments: Mapping[str, str]) -> str:
    relation = parts["relation"][0]
    own: dict[str | None, list[Row]] = defaultdict(list)
    for row in parts["constraint"]:
        if not row["late"]:
            own[row["beside"]].append(row)
    lines = [(_column(row, own[row["plain"]]), row["plain"]) for row in parts["column"]]
    lines += [(_constraint(row), "") for row in own[None]]
    ends = [","] * (len(lines) - 1) + [""]
    body = [
        _commented(text + end, comments.get(f"{relation['table']}.{name}", ""))
        for (text, name), end in zip(lines, ends, strict=True)
    ]
    head, tail = f"create table {relation['table']} (", f"){_options(relation)};"
    return "\n".join([head, *body, tail, *filter(None, map(_stored, parts["column"]))])


def _commented(line: str, about: str) -> str:
    """With its comment beside it, or above where there is no room."""
    if not about or len(line) + len(about) + 5 <= WIDTH:
        return f"{line}  -- {about}" if about else line
    return "\n".join([*_comment(about, "  "), line])


def _comment(about: str, indent: str = "") -> list[str]:
    return [f"{indent}-- {line}" for line in textwrap.wrap(about, WIDTH - 3 - len(indent))]


def _column(column: Row, constraints: list[Row]) -> str:
    kinds = [row["kind"] for row in constraints]
    words = [f"  {column['name']}", readable(column["type"])]
    if column["required"] and "p" not in kinds and not column["numbered"]:
        words.append("not null")
    if column["numbered"]:
        words.append("generated always as identity")
    elif column["generated"]:
        words.append(f"generated always as ({readable(column['value'])}) stored")
    elif (column["value"] or "").startswith("nextval("):
        words[1] = "bigserial"
    elif column["value"] is not None:
        words.append(f"default {readable(column['value'])}")
    return filled(" ".join([*words, *map(_inline, constraints)]), "    ")


def _inline(constraint: Row) -> str:
    text = readable(constraint["definition"])
    whole = {"p": "primary key", "u": "unique", "c": text}
    return whole.get(constraint["kind"], text[text.find("references") :])


def _constraint(row: Row) -> str:
    name = "" if row["kind"] == "p" else f"constraint {row['name']} "
    return filled(f"  {name}{readable(row['definition'])}", "    ")


def _late(row: Row) -> str:
    head = f"alter table {row['table']} add constraint {row['name']}"
    return filled(f"{head} {readable(row['definition'])};")


def _stored(column: Row) -> str:
    if not column["storage"]:
        return ""
    head = f"alter table {column['table']} alter column {column['name']}"
    return f"{head} set storage {_STORAGE[column['storage']]};"


def _guarded(relation: Row) -> str:
    return f"alter table {relation['table']} enable row level security;"


def _policy(row: Row) -> str:
    head = f"create policy {row['name']} on {row['table']}"
    kind = "" if row["permissive"] else "as restrictive "
    start = f"{kind}for {row['operation']} to {row['roles']}"
    clauses = [
        (word, bare(readable(row[part])))
        for word, part in (("using", "condition"), ("with check", "check"))
        if row[part]
    ]
    clause = " ".join(f"{word} ({text})" for word, text in clauses)
    for line in (f"{head} {start} {clause};", f"  {start} {clause};"):
        if len(line) <= WIDTH:
            return line if line.startswith(head) else f"{head}\n{line}"
    body = " ".join(f"{word} (\n{conditions(text, '    ')})" for word, text in clauses)
    return f"{head}\n  {start} {body};"


def _grants(table: str, rows: list[Row]) -> Iterator[str]:
    """One statement for all roles with the same privileges."""
    held: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        held[row["role"]][row["privilege"]] += [row["column"]] if row["column"] else []
    roles: dict[str, list[str]] = defaultdict(list)
    for role, privileges in held.items():
        roles[", ".join(_privilege(*one) for one in privileges.items())].append(role)
    for text, names in roles.items():
        yield filled(f"grant {text} on {table} to {', '.join(names)};")


def _privilege(name: str, columns: list[str]) -> str:
    return f"{name} ({', '.join(columns)})" if columns else name


def _trigger(row: Row) -> str:
    text = readable(row["definition"]).removeprefix("create ")
    return filled(f"-- {text}", "--   ")
