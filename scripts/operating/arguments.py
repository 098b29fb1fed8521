"""How the operators' scripts read their command line; light, so that --help comes at once."""

from __future__ import annotations

import argparse

FINDINGS = 1


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """An argument parser whose --help is the module's docstring, examples and all."""
    return argparse.ArgumentParser(
        prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
