"""Reads what people wrote beside the cells of a sheet. `openpyxl` leaves it out where it reads row
by row.

Excel stores a conversation twice, as comments with answers and as a note for older programs, which
says first what it is."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any

_LARGEST = 5_000_000  # bytes of a part


def cell_comments(data: bytes, sheet: str) -> Iterator[str]:
    """A line for each comment of the `sheet`, named by its part."""
    folder, name = posixpath.split(sheet.lstrip("/"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        targets = [
            (one.get("Type", ""), one.get("Target", ""))
            for one in _elements(archive, f"{folder}/_rels/{name}.rels", "Relationship")
        ]
        for kind, element, text in (
            ("/threadedComment", "threadedComment", "text"),
            ("/comments", "comment", "t"),
        ):
            found = [
                (one.get("ref", ""), _words(one, text))
                for type_name, target in targets
                if type_name.endswith(kind)
                for one in _elements(archive, _path(folder, target), element)
            ]
            yield from (f"Comment at {cell}: {words}" for cell, words in found if words)
            if found:
                return


def _path(folder: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(folder, target))


def _elements(archive: zipfile.ZipFile, part: str, name: str) -> Iterator[Any]:
    """The elements of that name in a part; none if there is no such part."""
    from lxml import etree  # type: ignore[import-untyped]

    if part not in archive.NameToInfo or archive.getinfo(part).file_size > _LARGEST:
        return
    parser = etree.XMLParser(resolve_entities=False, recover=True)
    root = etree.fromstring(archive.read(part), parser)
    yield from root.iter(f"{{*}}{name}") if root is not None else ()


def _words(element: Any, name: str) -> str:
    words = "".join(one.text or "" for one in element.iter(f"{{*}}{name}"))
    return " ".join(words.split())
