"""structlog without Rich, for a process that writes nothing but JSON lines.

structlog loads Rich where it is installed, for its log of colours: 79 modules and 4 MB in each
process. Whoever starts one imports this module before all others.
"""

from __future__ import annotations

import sys

if "structlog" not in sys.modules and "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
