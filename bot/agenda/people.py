"""Who is meant by a name: members of the group, and who speaks or is mentioned. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.agenda.plans import Attendee
from bot.agenda.refusals import AgendaRefused
from bot.text.addressee_words import bare_name, means_asker
from bot.text.roster import Roster


@dataclass(frozen=True, slots=True)
class Colleague:
    """Somebody who can be meant; `is_outside`: of another organization than who asks."""

    open_id: str
    name: str
    is_outside: bool = False


def known_people(
    members: Iterable[Colleague], roster: Roster, asker: str
) -> Mapping[str, Colleague]:
    """By open id: of the roster, under the names that it has, and the members."""
    found = {
        one.open_id: Colleague(one.open_id, one.name)
        for one in roster.people
        if not one.is_bot or one.open_id == asker
    }
    for one in members:
        known = found.get(one.open_id)
        found[one.open_id] = Colleague(
            one.open_id, one.name or (known.name if known else ""), one.is_outside
        )
    return found


def meant(names: Iterable[str], known: Mapping[str, Colleague], asker: str) -> list[Attendee]:
    """Those who are named; a first or last name is enough where one person has it. Raises
    `AgendaRefused`."""
    return [_meant(bare_name(name), known, asker) for name in names if bare_name(name)]


def _meant(name: str, known: Mapping[str, Colleague], asker: str) -> Attendee:
    if means_asker(name) or name == asker:
        return Attendee(asker, known[asker].name if asker in known else name)
    if name in known:
        found = [known[name]]
    else:
        said = name.casefold()
        found = [one for one in known.values() if one.name.casefold() == said] or [
            one for one in known.values() if said in one.name.casefold().split()
        ]
    if not found:
        raise AgendaRefused("unknown_person", name=name)
    if len(found) > 1:
        raise AgendaRefused("several_people", name=name)
    if found[0].is_outside:
        raise AgendaRefused("outside", name=found[0].name)
    return Attendee(found[0].open_id, found[0].name)
