"""An append-only file of changes, so that the chat survives a restart of the platform.

One JSON object per line: `{"kind": ..., "entity": {...}}`; the last line of an entity wins.
A line that a crash cut short is skipped. At each start the file is rewritten with one line per
entity, because a streamed card writes a line per frame.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox.world.entities import Entity, from_record, kind_of, to_record


class Journal:
    """Writes every entity it is given as one line. Thread-safe."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, entity: Entity) -> None:
        """Append the entity and flush."""
        with self._lock:
            if not self._file.closed:
                self._file.write(_line(entity))
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


def rewrite_journal(path: Path, entities: Iterable[Entity]) -> None:
    """Replace the file by these entities, in one step; nothing happens where there is no file."""
    if not path.exists():
        return
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(_line(entity) for entity in entities)
    draft.replace(path)


def _line(entity: Entity) -> str:
    return json.dumps({"kind": kind_of(entity), "entity": to_record(entity)}) + "\n"
