"""What came of a tool's call: a result for the model, and data that people's texts are made from.

Pure. A language model tells people of a result itself. Where none does (the offline model, a
pressed button), a `Wording` makes the text from kind and fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list

_IDS = re.compile(r" ?\(ID: [^()\s]*\)")
_COMMON = Catalogue(__file__)

Fields = Mapping[str, Any]
Teller = Callable[[Fields, Language], str]


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`result` is what the model is given: a text, or JSON. `kind` and `fields` (JSON) say the same
    as data; what has no kind speaks for itself. Not `ok`: it was not done."""

    result: Any
    kind: str = ""
    fields: Fields = field(default_factory=dict)
    ok: bool = True


class Wording:
    """The words of a room for the outcomes of its tools.

    `catalogue` has a text a kind; a kind that takes more than one has its own teller. Kinds that
    are not of the room, such as a memory that does not answer, are common to all.
    """

    def __init__(
        self, catalogue: Catalogue = _COMMON, tellers: Mapping[str, Teller] | None = None
    ) -> None:
        self._catalogue = catalogue
        self._tellers = tellers or {}

    def tell(self, outcome: ToolOutcome, language: Language) -> str:
        """What a person reads; ids stay between the models."""
        words = self._told(outcome, language)
        return words if outcome.ok else _COMMON.say("not-done", language, reason=words)

    def _told(self, outcome: ToolOutcome, language: Language) -> str:
        kind, fields = outcome.kind, outcome.fields
        if not kind:
            return _IDS.sub("", str(outcome.result))
        if teller := self._tellers.get(kind):
            return teller(fields, language)
        catalogue = self._catalogue if self._catalogue.has(kind) else _COMMON
        return catalogue.say(kind, language, **_shown(fields, language))


COMMON = Wording()


def _shown(fields: Fields, language: Language) -> Fields:
    """A list is shown as one text."""
    return {
        name: join_list(value, language) if isinstance(value, list | tuple) else value
        for name, value in fields.items()
    }
