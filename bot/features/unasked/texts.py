"""What people read around an answer that nobody asked for. Pure."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

say = Catalogue(__file__).say
