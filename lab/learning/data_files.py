"""Learned weights as the data files that the bot reads: JSON, a table a line. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def data_file(about: str, sections: Mapping[str, Mapping[str, Any]]) -> str:
    """`about` says where the weights come from; a line for each name of each section."""
    parts = [f'  "about": {json.dumps(about, ensure_ascii=False)}']
    for section, rows in sections.items():
        lines = (
            f"    {json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}"
            for name, row in rows.items()
        )
        parts.append(f'  "{section}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}"
