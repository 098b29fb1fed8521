"""What is said in comments beside the answer. Pure."""

from __future__ import annotations

from bot.text.catalogues import Catalogue

say = Catalogue(__file__).say
