"""What the console says. Its keys are those that the templates ask for."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

CATALOGUE = Catalogue(__file__)
say = CATALOGUE.say
