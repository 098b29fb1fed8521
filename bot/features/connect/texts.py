"""What `/connect` says, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from bot.feishu.user_scopes import WRITING, missing_scopes, purposes_of
from bot.text import times
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from memory.tables.user_tokens import GrantEnd, Outcome

say = Catalogue(__file__).say


def access_request(scopes: Collection[str], link: str, minutes: int, language: Language) -> str:
    """What is asked for, with the link to grant it."""
    purposes = set(purposes_of(scopes))
    of_documents = "read-documents" in purposes
    writes = not purposes.isdisjoint(WRITING)
    return "\n\n".join(
        (
            say("ask" if of_documents else "ask-more", language),
            _purpose_list(scopes, language),
            say("ask-link", language, link=link, n=minutes),
            say("ask-limits-writing" if writes else "ask-limits", language),
        )
    )


def granted_text(
    scopes: Collection[str], since: datetime, now: datetime, language: Language
) -> str:
    """What is granted, and since when."""
    when = times.day_text(since, language, now=now)
    return "\n\n".join(
        (
            say("granted-since", language, day=when),
            _purpose_list(scopes, language),
            say("use", language),
        )
    )


def outcome_text(
    outcome: Outcome,
    scopes: Collection[str],
    language: Language,
    asked_scopes: Collection[str] = (),
    *,
    goes_on: bool = False,
) -> str:
    """What came of asking for `asked_scopes`. `scopes`: what is granted now, also by what they
    granted before. `goes_on`: what they asked is answered now."""
    if outcome != "connected":
        return say(f"more-{outcome}" if scopes else f"outcome-{outcome}", language)
    if refused_purposes := _refused_purposes_of(asked_scopes, scopes):
        return "\n\n".join(
            (
                say("outcome-connected", language),
                _purpose_list(scopes, language),
                say("not-allowed", language, purposes=_in_one(refused_purposes, language)),
                say("use", language),
            )
        )
    now = (say("answers-now", language),) if goes_on else ()
    parts = (
        say("outcome-connected", language),
        _purpose_list(scopes, language),
        say("use", language),
    )
    return "\n\n".join((*parts, *now))


def allows_all(asked_scopes: Collection[str], granted_scopes: Collection[str]) -> bool:
    """Whether they allowed everything that they were asked for."""
    return not _refused_purposes_of(asked_scopes, granted_scopes)


def ending_text(why: GrantEnd | Literal[""], language: Language) -> str:
    """Why the bot may no longer act as the person."""
    return say(f"ended-{why}", language) if why else say("not-connected", language)


def _refused_purposes_of(
    asked_scopes: Collection[str], granted_scopes: Collection[str]
) -> list[str]:
    """The purposes that they were asked for and did not allow."""
    return [one for one in purposes_of(asked_scopes) if missing_scopes((one,), granted_scopes)]


def _in_one(purposes: Collection[str], language: Language) -> str:
    """Purposes in one sentence."""
    return join_list((say(f"purpose-{one}", language) for one in purposes), language)


def _purpose_list(scopes: Collection[str], language: Language) -> str:
    purposes = purposes_of(scopes)
    if not purposes:
        return say("nothing-granted", language)
    return "\n".join(f"- {say(f'purpose-{one}', language)}" for one in purposes)
