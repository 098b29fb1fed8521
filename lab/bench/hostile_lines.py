"""Lines that slow down a careless parser, in every place where people or a model write."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.bench.neighbours import Neighbourhood

LENGTH = 20_000
_LONGEST_COMMENT = 9_900
_PAUSE_S = 0.5
SHAPES = (
    *(" ", "\t", ",", "[", "(", "*", "_", "`", "<", "@", "1", "\n", "a", "请"),
    *("，。、 ,.!？", "and so, please "),
)
_BEGINNINGS = ("", "a", "- ", "ok", "remind me tomorrow ", "记住", "forget ")


def hostile_line(shape: str, begins: str = "", length: int = LENGTH) -> str:
    """Builds a line of that length whose end differs from the rest."""
    return begins + (shape * length)[: length - len(begins) - 2] + "\x01."


def _overheard(there: Neighbourhood, said: str) -> None:
    there.platform.say(there.people["Ann"], there.group, said)


def _asked(there: Neighbourhood, said: str) -> None:
    there.mention("Ann", said)


def _in_private(there: Neighbourhood, said: str) -> None:
    there.platform.say(there.people["Ann"], there.p2p("Ann"), said)


def _commented(there: Neighbourhood, said: str) -> None:
    there.comment("Ann", there.mine, said[:_LONGEST_COMMENT])


def _answered(there: Neighbourhood, said: str) -> None:
    there.mention("Ann", f"answer {there.script(said)}.")


def _named(there: Neighbourhood, said: str) -> None:
    """Somebody of that name asks and is mentioned."""
    there.add_person(said)
    there.platform.say(there.people[said], there.group, f"@{there.bot_name} who am I?")


def _attached(there: Neighbourhood, said: str) -> None:
    """A file of that name, with that in it."""
    data = base64.b64encode(said.encode()).decode()
    file = {"message_type": "file", "file_name": f"{said}.txt", "file_base64": data}
    there.platform.say(there.people["Ann"], there.p2p("Ann"), "", **file)


def _documented(there: Neighbourhood, said: str) -> None:
    """A document of that title, with that in it."""
    made = there.document("Ann", said, said)
    there.mention("Ann", f"what is in {made['url']} ?")


PLACES: tuple[Callable[[Neighbourhood, str], None], ...] = (
    *(_overheard, _asked, _in_private, _commented, _answered, _named, _attached, _documented),
)
COUNT = len(SHAPES) * len(PLACES)


def say_all(there: Neighbourhood) -> None:
    """Says each of them in every place."""
    begins = itertools.cycle(_BEGINNINGS)
    for shape, place in itertools.product(SHAPES, PLACES):
        place(there, hostile_line(shape, next(begins)))
        time.sleep(_PAUSE_S)
