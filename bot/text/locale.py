"""The language of the terminal; light, for scripts whose --help comes at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal


def terminal_language(environment: Mapping[str, str] = os.environ) -> Literal["zh", "en"]:
    """That of the locale (POSIX: the first variable that is set)."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"
