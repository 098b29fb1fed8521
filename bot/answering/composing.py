"""From what was answered to the exact markdown of each card."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from bot.answering.question import Turn, notified
from bot.feishu import markup, splitting
from bot.feishu.normalising import normalised
from bot.mentions import address_reply, to_card
from bot.services import Services
from bot.text.address_template import PLAIN, AutoMention, MentionTemplate
from bot.text.roster import NOBODY, Escape, Person, Roster

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks to whom, and how they are addressed; nobody is where `addresses` is off."""

    agent: Person
    addressee: Person | None
    roster: Roster = NOBODY
    sender_type: str = "user"
    chat_type: str = "group"
    addresses: bool = True
    template: MentionTemplate = PLAIN
    allow_all: bool = False


def compose(
    services: Services,
    turn: Turn,
    text: str,
    *,
    nothing: str,
    auto_mention: AutoMention | None = None,
) -> list[str]:
    """The markdown of each card: addressed to whom it is for, inert, within the limits.

    `nothing` is said where the text comes to nothing. `auto_mention`: in place of the setting.
    """
    return cards_of(text, voice_of(services, turn, auto_mention), nothing=nothing)


def voice_of(services: Services, turn: Turn, auto_mention: AutoMention | None = None) -> Voice:
    """The bot's voice in a turn: it addresses who asked, or whom the question is about."""
    settings = services.settings
    mode = auto_mention or settings.auto_mention
    sender = turn.request.sender_open_id
    addressee_id = turn.context.user_id if mode == "meant" else sender
    notified_ids = notified(turn)
    return Voice(
        agent=turn.bot,
        addressee=turn.names.person(addressee_id) if addressee_id in notified_ids else None,
        roster=turn.names.roster(notified_ids) if turn.in_group else NOBODY,
        sender_type=turn.request.sender_type if addressee_id == sender else "user",
        chat_type=turn.request.chat_type,
        addresses=mode != "off",
        template=settings.template,
        allow_all=settings.allow_mention_all,
    )


def cards_of(
    text: str, voice: Voice, *, nothing: str, escape: Escape = markup.card_markdown
) -> list[str]:
    """The markdown of each card that says `text` in that voice. Pure."""
    normal_text = _addressed(normalised(text), voice, addresses=False)
    addressed_text = _addressed(
        normal_text if _is_seen(normal_text) else nothing, voice, addresses=voice.addresses
    )
    markdown = to_card(
        addressed_text,
        voice.roster,
        escape=escape,
        preferred=voice.addressee.open_id if voice.addressee else None,
        allow_all=voice.allow_all,
        lead=voice.template.lead if voice.addresses else "",
    )
    return splitting.split_markdown(markdown)


def _addressed(text: str, voice: Voice, *, addresses: bool) -> str:
    return address_reply(
        text,
        sender=voice.addressee,
        agent=voice.agent,
        sender_type=voice.sender_type,
        roster=voice.roster,
        chat_type=voice.chat_type,
        auto_mention=addresses,
        template=voice.template,
    )


def _is_seen(text: str) -> bool:
    """Whether a reader sees anything of `text`."""
    return any(unicodedata.category(character) not in _UNSEEN for character in text)
