"""What came of the documents of one turn. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocumentsOutcome:
    """`withheld`: there is one that not everybody who reads the answer can open, and that who asked
    may be told of alone. `unconnected`: one was asked for, and who asked has not connected their
    account."""

    withheld: bool = False
    unconnected: bool = False


NO_DOCUMENTS = DocumentsOutcome()
