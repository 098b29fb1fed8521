"""What `/connect` says, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from bot.feishu.user_scopes import purposes_of
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language
from memory.tables.user_tokens import Ended, Outcome

say = Catalogue(__file__).say


def asked(scopes: Collection[str], link: str, minutes: int, language: Language) -> str:
    """What is asked for, with the link to grant it."""
    return "\n\n".join(
        (
            say("ask", language),
            _listed(scopes, language),
            say("ask-link", language, link=link, n=minutes),
            say("ask-limits", language),
        )
    )


def granted(scopes: Collection[str], since: datetime, now: datetime, language: Language) -> str:
    """What is granted, and since when."""
    when = spoken.day(since, language, now=now)
    return "\n\n".join(
        (say("granted-since", language, day=when), _listed(scopes, language), say("use", language))
    )


def answered(outcome: Outcome, scopes: Collection[str], language: Language) -> str:
    """What came of asking."""
    if outcome != "connected":
        return say(f"outcome-{outcome}", language)
    return "\n\n".join(
        (say("outcome-connected", language), _listed(scopes, language), say("use", language))
    )


def ended(why: Ended | Literal[""], language: Language) -> str:
    """Why the bot may no longer act as the person."""
    return say(f"ended-{why}", language) if why else say("not-connected", language)


def _listed(scopes: Collection[str], language: Language) -> str:
    purposes = purposes_of(scopes)
    if not purposes:
        return say("nothing-granted", language)
    return "\n".join(f"- {say(f'purpose-{one}', language)}" for one in purposes)
