"""The mutants, and where they belong in the code as it is now.

A mutant is a snippet and its replacement. The snippet is searched in the function of that name,
whatever its lines and indentation are, first in the file it was found in and then in the others,
so the list outlives moved code. A mutant of policies and privileges is a statement instead, which
runs after the migrations.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_SOURCES = ("bot", "memory", "sql")
_SQL_HEAD = re.compile(r"create (?:or replace )?function (?:\w+\.)?(\w+)\s*\(")
_SQL_NEXT = re.compile(r"^(?:create|drop|alter|grant|revoke|comment) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """`find` becomes `replace` in `function` of `file`, or `statement` changes the migrated
    database. `tests`: module → names of its tests that cover it, the closest first."""

    id: str
    area: str
    file: str = ""
    function: str = ""
    find: str = ""
    replace: str = ""
    statement: str = ""
    tests: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """A mutant in the present code: `text` is the whole file `path` with the change in it, or
    `statement` is its own."""

    mutant: Mutant
    path: str = ""
    text: str = ""
    statement: str = ""


def load(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, in the order of their files."""
    return [Mutant(**row) for file in sorted(folder.glob("*_mutants.jsonl")) for row in rows(file)]


def rows(file: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def place(mutant: Mutant, root: Path) -> Placed | None:
    """The mutant in the checkout at `root`. None: its snippet is gone, or is there twice."""
    if mutant.statement:
        return Placed(mutant, statement=mutant.statement)
    pattern = re.compile(r"\s+".join(map(re.escape, mutant.find.split())))
    for path in _candidates(root / mutant.file, root):
        text = path.read_text(encoding="utf-8")
        functions = _python_functions if path.suffix == ".py" else _sql_functions
        found = [
            (start, end, match.span())
            for start, end in functions(text, mutant.function)
            for match in pattern.finditer(text, start, end)
        ]
        if len(found) == 1:
            [(start, end, (first, after))] = found
            changed = text[start:first] + mutant.replace + text[after:end]
            name = path.relative_to(root).as_posix()
            return Placed(mutant, name, text[:start] + changed + text[end:])
    return None


def _candidates(first: Path, root: Path) -> Iterator[Path]:
    if first.exists():
        yield first
    for folder in _SOURCES:
        yield from (p for p in sorted((root / folder).rglob(f"*{first.suffix}")) if p != first)


def _sql_functions(text: str, name: str) -> Iterator[tuple[int, int]]:
    """The places (from, to) of the definitions of `name`."""
    for head in _SQL_HEAD.finditer(text):
        if head[1] == name:
            following = _SQL_NEXT.search(text, head.end())
            yield head.start(), following.start() if following else len(text)


def _python_functions(text: str, name: str) -> Iterator[tuple[int, int]]:
    """The same of Python; `name` is qualified: Class.method, function.inner."""
    if f" {name.rpartition('.')[2]}(" not in text:
        return
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    nodes: list[tuple[str, ast.AST]] = [("", ast.parse(text))]
    while nodes:
        path, parent = nodes.pop()
        for child in ast.iter_child_nodes(parent):
            here = path
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                here = f"{path}.{child.name}".lstrip(".")
                if here == name:
                    yield starts[child.lineno - 1], starts[child.end_lineno or child.lineno]
            if isinstance(child, ast.stmt):
                nodes.append((here, child))
