"""What came of the documents of one turn. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.documents.links import DocumentLink


@dataclass(frozen=True, slots=True)
class DocumentsOutcome:
    """`told`: those that the answer was given. `withheld`: there is one that not everybody who
    reads the answer can open, and that who asked may be told of alone. `unconnected`: one was asked
    for, and who asked has not connected their account."""

    told: tuple[DocumentLink, ...] = ()
    withheld: bool = False
    unconnected: bool = False


NO_DOCUMENTS = DocumentsOutcome()
