"""The mutants and where they belong in the code as it is now.

A mutant is a snippet and its replacement. The snippet is searched in the function of that name,
whatever its lines and indentation are, first in the file it was found in and then in the others,
so the list outlives moved code. A mutant of a table's policies is a statement instead, which runs
after the migrations.
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
_SQL_FUNCTION = r"create (?:or replace )?(?:function|procedure) (?:\w+\.)?{}\s*\("
_REPLACING = re.compile(r"create (?:or replace )?(function|procedure)")
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

    @property
    def language(self) -> str:
        return "Python" if self.file.endswith(".py") else "SQL"

    @property
    def change(self) -> str:
        """The change in one line, for people."""
        return self.statement or " ".join(f"{self.function}: {self.find} → {self.replace}".split())


@dataclass(frozen=True, slots=True)
class Placed:
    """A mutant in the present code: `text` is the whole file `path` with the change in it. Of a SQL
    function, `statement` redefines it, so that the database need not be migrated anew."""

    mutant: Mutant
    path: str = ""
    text: str = ""
    statement: str = ""


def load(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, in the order of their files."""
    return [Mutant(**row) for file in sorted(folder.glob("*_mutants.jsonl")) for row in rows(file)]


def rows(file: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file; none if it does not exist."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def place(mutant: Mutant, root: Path) -> Placed | None:
    """The mutant in the checkout at `root`. None: its snippet is gone, or is there twice."""
    if mutant.statement:
        return Placed(mutant, statement=mutant.statement)
    pattern = re.compile(r"\s+".join(map(re.escape, mutant.find.split())))
    for path in _candidates(mutant.file, root):
        text = path.read_text(encoding="utf-8")
        is_python = path.suffix == ".py"
        found = [
            (start, end, match.start(), match.end())
            for start, end in _function(text, mutant.function, is_python=is_python)
            for match in pattern.finditer(text[start:end])
        ]
        if len(found) == 1:
            [(start, end, first, after)] = found
            changed = text[start:end][:first] + mutant.replace + text[start:end][after:]
            statement = (
                "" if is_python else _REPLACING.sub(r"create or replace \1", changed, count=1)
            )
            name = path.relative_to(root).as_posix()
            return Placed(mutant, name, text[:start] + changed + text[end:], statement)
    return None


def _candidates(file: str, root: Path) -> Iterator[Path]:
    first = root / file
    if first.exists():
        yield first
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob(f"*{first.suffix}")):
            if path != first:
                yield path


def _function(text: str, name: str, *, is_python: bool) -> list[tuple[int, int]]:
    """The places (from, to) of the functions called `name`; the whole text if it is ""."""
    if not name:
        return [(0, len(text))]
    if is_python:
        return [] if name.rpartition(".")[2] not in text else list(_python_functions(text, name))
    heads = list(re.finditer(_SQL_FUNCTION.format(re.escape(name)), text))
    ends = (_SQL_NEXT.search(text, head.end()) for head in heads)
    return [(h.start(), e.start() if e else len(text)) for h, e in zip(heads, ends, strict=True)]


def _python_functions(text: str, name: str) -> Iterator[tuple[int, int]]:
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def search(node: ast.AST, path: str) -> Iterator[tuple[int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                here = f"{path}.{child.name}".lstrip(".")
                if here == name:
                    yield lines[child.lineno - 1], lines[child.end_lineno or child.lineno]
                yield from search(child, here)
            elif isinstance(child, ast.stmt):
                yield from search(child, path)

    yield from search(ast.parse(text), "")
