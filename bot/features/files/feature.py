"""What sending files brings."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.files.tools import file_tools

FILES = Feature(name="files", tools=file_tools())
