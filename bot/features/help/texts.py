"""What people read in the help, of unknown commands, and of why the bot spoke or did not. Pure."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

CATALOGUE = Catalogue(__file__)
say = CATALOGUE.say
