"""What operators read of whether people get answers. Pure."""

from bot.text.catalogues import Catalogue

CATALOGUE = Catalogue(__file__)
