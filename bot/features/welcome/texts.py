"""The bot's first words in a chat, in both languages. Pure."""

from __future__ import annotations

from bot.features.help import texts as help_texts
from bot.features.help.capabilities import SetUp
from bot.text.catalogues import Catalogue
from bot.text.languages import Language

say = Catalogue(__file__).say


def welcome_text(bot: str, here: SetUp, language: Language) -> str:
    """What it can do, whose memory it keeps, who can see it. `bot` is a name, safe in Markdown."""
    sharing = "shared" if here.shares else "apart"
    mode = here.mode if here.follows else "mention"
    text = say(
        "in-group" if here.in_group else "in-p2p",
        language,
        bot=bot,
        speaks=say(f"speaks-{mode}", language),
        whose=say(f"whose-{sharing}", language),
        seen=say(f"seen-{sharing}", language),
        also=say(f"also-{sharing}", language),
    )
    if here.in_group and here.imports:
        text += say("imports", language, bot=bot)
    return text if here.hears else f"{text}\n\n{help_texts.say('mentions-only', language)}"
