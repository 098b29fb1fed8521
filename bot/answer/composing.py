"""From what was answered to the exact markdown of each card."""

from __future__ import annotations

from bot.answer.question import Turn, people_of
from bot.feishu import markup, splitting
from bot.mentions import NOBODY, address_reply, to_card
from bot.services import Services


def compose(services: Services, turn: Turn, text: str, *, auto_mention: bool = True) -> list[str]:
    """The markdown of each card: addressed to the person who asked, inert, within the limits."""
    sender = turn.names.person(turn.event.sender_open_id)
    roster = turn.names.roster(people_of(turn)) if turn.in_group else NOBODY
    spoken = address_reply(
        text,
        sender=sender,
        agent=turn.bot,
        sender_type=turn.event.sender_type,
        roster=roster,
        chat_type=turn.event.chat_type,
        auto_mention=services.settings.auto_mention and auto_mention,
    )
    markdown = to_card(
        spoken,
        roster,
        escape=markup.card_markdown,
        preferred=sender.open_id,
        allow_all=services.settings.allow_mention_all,
    )
    return splitting.split_markdown(markdown)
