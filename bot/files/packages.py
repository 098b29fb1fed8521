"""Opens the parts of an Office file, as far as they are there.

Programs leave parts out, name some that do not exist, and declare kinds that no library knows. What
the text does not need must not make a file unreadable, so parts are found by relationships alone.
Source: ECMA-376 part 2."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

DAMAGED_PARTS = "it is damaged, and parts of it may be missing"
XML_LIMITS = (2, 89, 114)  # libxml2: no memory, entity loop, resource limit
_LARGEST_HELPER = 5_000_000  # bytes of a part beside the text


class Relationship(NamedTuple):
    """What leads from a part to another; `kind` is the last word of its type."""

    id: str
    kind: str
    target: str


class Package:
    """The parts of an Office file by their names. `remarks` gets what could not be read."""

    def __init__(self, data: bytes, remarks: list[str]) -> None:
        self.archive = Archive(io.BytesIO(data))
        self._remarks = remarks

    def main_part(self) -> str:
        """Returns the part that the others belong to; raises KeyError if there is none."""
        for one in self.relationships(""):
            if one.kind == "officeDocument":
                return one.target
        raise KeyError("officeDocument")

    def parts_from(self, part: str) -> Iterator[str]:
        """Every part that relationships lead to, each once, and before its own."""
        seen = {part}
        waiting = [part]
        while waiting:
            targets = [one.target for one in self.relationships(waiting.pop())]
            fresh = [one for one in dict.fromkeys(targets) if one not in seen]
            seen.update(fresh)
            waiting += reversed(fresh)
            yield from fresh

    def relationships(self, part: str) -> list[Relationship]:
        """What leads from a part (from the package for "") to parts that are there."""
        folder, name = posixpath.split(part)
        root = self.root(posixpath.join(folder, f"_rels/{name}.rels"), _LARGEST_HELPER)
        found = []
        for one in root.iter("{*}Relationship") if root is not None else ():
            target = _path(folder, one.get("Target", ""))
            if one.get("TargetMode") != "External" and target in self.archive:
                kind = one.get("Type", "").rpartition("/")[2]
                found.append(Relationship(one.get("Id", ""), kind, target))
        return found

    def root(self, part: str, largest: int | None = None) -> Any:
        """The XML of a part; None where there is none, or it has more than `largest` bytes. What
        stands before and after damage is read."""
        from lxml import etree  # type: ignore[import-untyped]

        if part not in self.archive:
            return None
        if largest is not None and self.archive.getinfo(part).file_size > largest:
            return None
        content = self.archive.read(part)
        try:
            return etree.fromstring(content, etree.XMLParser(resolve_entities=False))
        except etree.XMLSyntaxError as exc:
            if exc.code in XML_LIMITS:
                raise
        if DAMAGED_PARTS not in self._remarks:
            self._remarks.append(DAMAGED_PARTS)
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, recover=True))


class Archive(zipfile.ZipFile):
    """A zip file whose names have slashes and are found in any case: some programs write
    "xl\\workbook.xml", or "SharedStrings.xml" for what they name "sharedStrings.xml"."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        for info in self.filelist:
            info.filename = info.filename.replace("\\", "/")
        self.NameToInfo = {info.filename: info for info in self.filelist}
        self._by_key = {name.lower(): info for name, info in self.NameToInfo.items()}

    def getinfo(self, name: str) -> zipfile.ZipInfo:
        """The part of that name; raises KeyError."""
        return self._by_key[name.lower()]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_key


def _path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
