"""What the files of `sql/` say, as text."""

from __future__ import annotations

import re
from pathlib import Path

from memory.migrations import FOLDER

_FUNCTION = re.compile(r"^create (?:or replace )?function ([\w.]+)\(", re.MULTILINE)
_LIST = re.compile(r"^  (\w+) constant text\[\] := '\{(.*?)\}';", re.MULTILINE | re.DOTALL)

_SCHEMAS = dict.fromkeys(("of_functions", "of_origins", "of_taking_back"), "bot_private")


def functions_of(files: list[Path]) -> list[str]:
    """The functions that `files` define, with their schema, as often as they do."""
    return [name for file in files for name in _FUNCTION.findall(file.read_text())]


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
