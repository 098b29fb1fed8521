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
    names_by_id = {
        one.open_id: Colleague(one.open_id, one.name)
        for one in roster.people
        if not one.is_bot or one.open_id == asker
    }
    for one in members:
        colleague = names_by_id.get(one.open_id)
        names_by_id[one.open_id] = Colleague(
            one.open_id, one.name or (colleague.name if colleague else ""), one.is_outside
        )
    return names_by_id


def meant(names: Iterable[str], colleagues: Mapping[str, Colleague], asker: str) -> list[Attendee]:
    """Those who are named; a first or last name is enough where one person has it. Raises
    `AgendaRefused`."""
    return [_meant(bare_name(name), colleagues, asker) for name in names if bare_name(name)]


def _meant(name: str, colleagues: Mapping[str, Colleague], asker: str) -> Attendee:
    if means_asker(name) or name == asker:
        return Attendee(asker, colleagues[asker].name if asker in colleagues else name)
    if name in colleagues:
        candidates = [colleagues[name]]
    else:
        folded_name = name.casefold()
        candidates = [one for one in colleagues.values() if one.name.casefold() == folded_name] or [
            one for one in colleagues.values() if folded_name in one.name.casefold().split()
        ]
    if not candidates:
        raise AgendaRefused("unknown_person", name=name)
    if len(candidates) > 1:
        raise AgendaRefused("several_people", name=name)
    if candidates[0].is_outside:
        raise AgendaRefused("outside", name=candidates[0].name)
    return Attendee(candidates[0].open_id, candidates[0].name)
