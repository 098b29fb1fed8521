"""What the files of `sql/` say, as text."""

from __future__ import annotations

import re
from pathlib import Path

from memory.migrations import FOLDER

_FUNCTION = re.compile(r"^create (?:or replace )?function ([\w.]+)\(", re.MULTILINE)
_TRIGGER = re.compile(r"^create (?:or replace )?trigger (\w+)", re.MULTILINE)
_LIST = re.compile(r"^  (\w+) constant text\[\] := '\{(.*?)\}';", re.MULTILINE | re.DOTALL)

_SCHEMAS = dict.fromkeys(("of_functions", "of_origins", "of_taking_back"), "bot_private")

# They stand in numbered files, because policies depend on them.
OF_POLICIES = frozenset(
    {
        "public.claim",
        "public.token_auth_user",
        "public.membership_lasts",
        "public.readable_chats",
        "public.own_tenant",
        "bot_private.told_since",
        "bot_private.turns_under_way",
        "bot_private.import_since",
        "bot_private.readable_imports",
    }
)


def numbered(folder: Path = FOLDER) -> list[Path]:
    """The numbered files and the backfills."""
    return [*sorted(folder.glob("[0-9]*.sql")), *sorted((folder / "backfills").glob("*.sql"))]


def functions_of(files: list[Path]) -> list[str]:
    """The functions that `files` define, with their schema, as often as they do."""
    return [name for file in files for name in _FUNCTION.findall(file.read_text())]


def triggers_of(files: list[Path]) -> list[str]:
    return [name for file in files for name in _TRIGGER.findall(file.read_text())]


def access() -> dict[str, list[str]]:
    """The lists of `access.sql`: functions with their schema, by the name of the list."""
    text = (FOLDER / "access.sql").read_text()
    return {
        who: [
            name if "." in name else f"{_SCHEMAS.get(who, 'public')}.{name}"
            for name in re.findall(r"[\w.]+", names)
        ]
        for who, names in _LIST.findall(text)
    }
