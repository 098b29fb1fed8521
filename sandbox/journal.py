"""An append-only file of changes, so that the chat survives a restart of the platform.

One JSON object per line: `{"kind": ..., "entity": {...}}`; the last line of an entity wins.
A line that a crash cut short is skipped.
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

from sandbox.entities import Entity, from_record, kind_of, to_record


class Journal:
    """Writes every entity it is given as one line. Thread-safe."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, entity: Entity) -> None:
        """Append the entity and flush."""
        line = json.dumps({"kind": kind_of(entity), "entity": to_record(entity)})
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file; later writes are dropped."""
        with self._lock:
            self._file.close()


def read_journal(path: Path) -> Iterator[Entity]:
    """The entities in the file, oldest first; nothing when there is no file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                record = json.loads(line)
                entity = from_record(record["kind"], record["entity"])
            except (ValueError, KeyError, TypeError):
                continue
            yield entity
