"""What people read on cards besides the answer: buttons, states and notices. Pure."""

from __future__ import annotations

from bot.text.languages import Catalogue

CATALOGUE = Catalogue(__file__)
say, say_both = CATALOGUE.say, CATALOGUE.say_both
