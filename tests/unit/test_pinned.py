"""What is installed is what pyproject.toml asks for, each file pinned by its hash."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.rows import every_row

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ASKED = PROJECT["project"]["dependencies"]
FOR_TESTS = PROJECT["dependency-groups"]["dev"]
VECTORS = PROJECT["project"]["optional-dependencies"]["vectors"]
NODE = PROJECT["dependency-groups"]["node"]  # installed only where there is none
FILES = {
    "requirements.txt": ASKED,
    "requirements-vectors.txt": VECTORS,
    "requirements-dev.txt": [*ASKED, *FOR_TESTS],
}
PINNED = FILES | {"requirements-node.txt": NODE}
NEXT_STEP = "run scripts/lock"


def entries(file: str) -> list[str]:
    """The requirements of a file, each with its hashes, without comments."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned(file: str) -> dict[str, str]:
    """Version by name."""
    wanted = [Requirement(entry.split("--hash")[0]) for entry in entries(file)]
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in wanted}


@every_row("file", PINNED)
def test_every_requirement_has_one_version_and_hashes(file: str) -> None:
    for entry in entries(file):
        assert re.match(r"[a-z0-9._-]+==[^\s*]+ .*--hash=sha256:[0-9a-f]{64}", entry), entry


@every_row("file", PINNED)
def test_every_version_that_is_asked_for_is_the_one_that_is_pinned(file: str) -> None:
    found = pinned(file)
    for asked in map(Requirement, PINNED[file]):
        assert str(asked.specifier) == f"=={found.get(canonicalize_name(asked.name))}", NEXT_STEP


@every_row("file", FILES)
def test_whatever_a_pinned_package_needs_is_pinned_too(file: str) -> None:
    """On this machine, with the extras that are asked for."""
    found, queue, seen = pinned(file), [Requirement(one) for one in FILES[file]], set()
    while queue:
        one = queue.pop()
        name = canonicalize_name(one.name)
        assert name in found, f"{name} is not in {file}: {NEXT_STEP}"
        if (key := (name, frozenset(one.extras))) in seen:
            continue
        seen.add(key)
        for needed in map(Requirement, metadata.requires(name) or ()):
            extras = [{"extra": extra} for extra in one.extras] or [{"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
                queue.append(needed)


def test_what_the_tests_run_with_is_what_the_service_runs_with() -> None:
    assert pinned("requirements.txt").items() <= pinned("requirements-dev.txt").items()
