"""The scenes, one module for each part of the product; `PROFILE` names the bot that plays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.corpus.bots import Memory
from tests.corpus.scene import Scene
from tests.corpus.scenes import (
    asking,
    cards,
    commands,
    conversation,
    documents,
    keeping,
    limits,
    offline,
    places,
    retraction,
    summaries,
    troubles,
)

Acts = Callable[[Scene], None]

_MODULES = (
    asking,
    conversation,
    keeping,
    commands,
    cards,
    retraction,
    summaries,
    documents,
    places,
    troubles,
    offline,
    limits,
)
PARTS: Mapping[str, Mapping[str, Acts]] = {
    name: {f"{name}_{scene}": acts for scene, acts in module.SCENES.items()}
    for module in _MODULES
    for name in [module.__name__.rpartition(".")[2]]
}
SCENES: Mapping[str, Acts] = {
    name: acts for scenes in PARTS.values() for name, acts in scenes.items()
}
MEMORIES: Mapping[str, Sequence[Memory]] = {
    "model": ("postgres", "supabase"),
    "second": ("postgres", "supabase"),
    "offline": ("postgres", "supabase"),
    "strict": ("postgres",),
}
_PROFILES = {module.__name__.rpartition(".")[2]: module.PROFILE for module in _MODULES}


def profile_of(scene: str) -> str:
    """The profile of the bot that plays the scene."""
    return _PROFILES[scene.partition("_")[0]]
