"""The learned weights, as the data files beside this module hold them.

They are read at import, as code is: processes that are forked later share them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class AddresseeWeights:
    """Of each trait in each situation, and of some words in all of them: the greater, the likelier
    the message is for the bot."""

    traits: dict[str, tuple[float, ...]]
    words: dict[str, float]


@dataclass(frozen=True)
class LinkWeights:
    """A table for each view of a message that begins a topic, and of a pair of messages: the
    greater, the likelier."""

    first: dict[str, tuple[float, ...]]
    pair: dict[str, tuple[float, ...]]


def _read(name: str, kind: type[Kind]) -> Kind:
    return msgspec.json.decode(Path(__file__).with_name(name).read_bytes(), type=kind)


ADDRESSEE = _read("addressee_weights.json", AddresseeWeights)
LINKS = _read("link_weights.json", LinkWeights)
