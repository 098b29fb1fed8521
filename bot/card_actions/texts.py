"""What stands in a chat's history for a reaction, and the answer to an unknown menu item. Pure."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

say = Catalogue(__file__).say
