"""The first file of `sql/` stands for the files of before the first release. Pure.

A database that has all of those counts it as applied. Their names stay in its ledger: processes of
the version before look for them until they are restarted.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

NAME = "0001_baseline.sql"
# They were applied in order, so a database with the last of each kind has all of them.
_LAST = frozenset({"0451_turns_by_number.sql", "backfills/0421_turn_terms_gone.sql"})
_UNTIL = "0451"
_WAY = "check out commit b513cde, run its scripts/migrate, and then this one"


def counted(recorded: Set[str]) -> set[str]:
    """The names in a ledger, with the baseline where they stand for it."""
    return {*recorded, NAME} if recorded >= _LAST else {*recorded}


def unfinished(recorded: Set[str]) -> str:
    """What to do about a database that has only some of the files; '' when it has none or all."""
    missing = sorted(_LAST - recorded)
    begun = any(_number(name) for name in recorded)
    if NAME in recorded or not missing or not begun:
        return ""
    return f"the database is older than the first release (it lacks {missing[0]}): {_WAY}"


def since(names: Iterable[str]) -> set[str]:
    """The baseline and the files after it, which tell one version from another. A new database
    never had the files before."""
    return {name for name in names if name == NAME or _number(name) > _UNTIL}


def _number(name: str) -> str:
    """Of a numbered file; '' of other steps."""
    number = name.removeprefix("backfills/").split("_")[0]
    return number if number.isdigit() else ""
