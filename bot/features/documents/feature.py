"""What reading documents brings."""

from __future__ import annotations

from bot.features.documents.tools import document_tools
from bot.features.feature import Feature

DOCUMENTS = Feature(name="documents", tools=document_tools())
