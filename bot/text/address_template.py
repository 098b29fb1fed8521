"""How an answer addresses somebody: what stands around the address, and who is meant. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bot.text.markdown import opens_block
from bot.text.roster import SEPARATORS

AutoMention = Literal["sender", "meant", "off"]

_AT = "{at}"
_MOST_CHARACTERS = 60
_FORBIDDEN = frozenset("@<>&`{}|\\\r")
_BY_FLAG = {"true": "sender", "1": "sender", "yes": "sender", "on": "sender"}
_NOT_BY_FLAG = {"false": "off", "0": "off", "no": "off"}


def auto_mention_of(value: object) -> AutoMention:
    """`sender`, `meant` or `off`; true and false are the first and the last.

    Raises ValueError with the values there are.
    """
    word = str(value).strip().lower()
    flag_value = (_BY_FLAG | _NOT_BY_FLAG).get(word, word)
    for mode in get_args(AutoMention):
        if flag_value == mode:
            return mode  # type: ignore[no-any-return]
    raise ValueError(f"it must be sender (true), meant or off (false), not {value!r}")


@dataclass(frozen=True, slots=True)
class MentionTemplate:
    """What stands before and after the address, as `{at} ` says: nothing, and a space."""

    lead: str = ""
    tail: str = " "

    @classmethod
    def parse(cls, text: str) -> MentionTemplate:
        """Raises ValueError with a sentence for what would not read as an address any more."""
        if text.count(_AT) != 1:
            raise ValueError("it must hold {at} once, where the address stands")
        lead, _, tail = text.lstrip().partition(_AT)
        if len(lead) + len(tail) > _MOST_CHARACTERS:
            raise ValueError(f"it may have at most {_MOST_CHARACTERS} characters besides {{at}}")
        if _FORBIDDEN.intersection(lead + tail):
            raise ValueError("it may not hold another address, tag, code or table: @ < > & ` | \\")
        is_printable = f"{lead}{tail}".replace("\n", " ").isprintable()
        bare = bool(lead) and bool(SEPARATORS.fullmatch(lead))
        if "\n" in lead or bare or not is_printable or opens_block(f"{lead}x"):
            raise ValueError("it must begin with plain words or {at}")
        return cls(lead, tail)


PLAIN = MentionTemplate()
