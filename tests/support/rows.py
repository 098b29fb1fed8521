"""Tables of cases in one test: a test for each row would cost more than the row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def every_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[..., Any]:
    """Like `pytest.mark.parametrize` within one test: tries every row, and reports each that
    fails. For tests without fixtures, since all rows would share them."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(rows)

    def over_rows(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def tried(*args: Any, **given: Any) -> None:
            assert table, "no row"
            failures: list[Exception] = []
            for row in table:
                values = row if len(keys) > 1 else [row]
                try:
                    test(*args, **given, **dict(zip(keys, values, strict=True)))
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001
                    failures.append(_of_row(failure, row))
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows failed", failures)

        left = [one for name, one in signature.parameters.items() if name not in keys]
        tried.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return tried

    return over_rows


def _of_row(failure: BaseException, row: object) -> Exception:
    """The failure with its row, which a traceback does not show."""
    kept = failure if isinstance(failure, Exception) else AssertionError(str(failure))
    kept.add_note(f"row: {row!r:.500}")
    return kept
