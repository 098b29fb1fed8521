"""`.env`: some values set, everything else as it was, readable by its owner only.

`changed` is pure. Lines of other variables, comments and their order stay; a value that the file
has twice is set where it counts, which is the last one.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

_HEAD = re.compile(r"\s*(?:export[ \t]+)?[^=]*=")
_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
_QUOTED = re.compile(r"""^\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,-]*")
_INTRODUCTION = "# Written by scripts/setup; .env.example lists everything else.\n"


def changed(text: str, values: Mapping[str, str]) -> str:
    """`text` with each variable of `values` set; what is new goes to the end."""
    lines = list(parse_stream(io.StringIO(text)))
    counts = {line.key: number for number, line in enumerate(lines) if line.key in values}
    kept = "".join(
        _line(line.original.string, values[line.key])
        if line.key is not None and counts.get(line.key) == number
        else line.original.string
        for number, line in enumerate(lines)
    )
    new = [f"{name}={_written(value)}\n" for name, value in values.items() if name not in counts]
    end = "\n" if new and kept and not kept.endswith("\n") else ""
    return kept + end + "".join(new)


def write(file: Path, values: Mapping[str, str]) -> None:
    """Sets `values` in `file`: the old one is there until the new one is complete, mode 0600.

    A link stays a link. Raises `OSError`.
    """
    target = file.resolve()
    old = target.read_text(encoding="utf-8") if target.exists() else _INTRODUCTION
    handle, name = tempfile.mkstemp(prefix=".env.", dir=target.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(changed(old, values))
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _written(value: str) -> str:
    """As python-dotenv reads it back. Raises `ValueError` for a value that is more than a line."""
    if "\n" in value or "\r" in value:
        raise ValueError("a value is one line")
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _line(old: str, value: str) -> str:
    """The same line with another value: what stands before it, and the remark behind it."""
    head = _HEAD.match(old)
    if head is None:  # a name alone
        return f"{old.rstrip()}={_written(value)}\n"
    rest = old[head.end() :]
    comment = _COMMENT.search(_QUOTED.sub("", rest, count=1))
    remark = f"  {comment[0].strip()}" if comment else ""
    return f"{head[0]}{_written(value)}{remark}" + ("\n" if rest.endswith("\n") else "")
