"""What people read in place of an answer, or around one. Pure."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

CATALOGUE = Catalogue(__file__)
say, say_both = CATALOGUE.say, CATALOGUE.say_both
