"""Nobody is told of a document that they cannot open, whatever happens before, also by what earlier
answers told: a random walk through the worker's own handlers, tables and calls.

DOCUMENT_WALK=10000 walks as far; DOCUMENT_WALK_SEED=n repeats a walk.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest
import structlog

from bot.features.documents import SourceDocumentCheck
from memory.sealing import new_sealing_key
from tests.support import depth
from tests.support.document_walk import Disclosure, walk
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

STEPS = depth.count("DOCUMENT_WALK", short=100, deep=5000)
SEED = os.environ.get("DOCUMENT_WALK_SEED")
_OF_ONE = 100
_MOST = 40  # walks that may be needed to see a broken rule


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**before)


async def test_nobody_is_told_of_what_they_cannot_open(database_url: str) -> None:
    faulthandler.cancel_dump_traceback_later()
    seen, began, dice = Counter[str](), time.monotonic(), depth.dice()
    for _ in range(1 if SEED else -(-STEPS // _OF_ONE)):
        async with stage(database_url, user_token_key=new_sealing_key()) as on:
            seen += await walk(on, int(SEED or dice.getrandbits(32)), _OF_ONE)
    print(f"\n{STEPS} steps in {time.monotonic() - began:.0f} s: {dict(seen)}")
    if not SEED:
        assert seen["to all"]
        assert seen["to one"]
        assert seen["withdrawn"]


async def test_a_rule_that_is_broken_is_caught(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def untellable(*_: object) -> frozenset[str]:
        return frozenset()

    faulthandler.cancel_dump_traceback_later()
    monkeypatch.setattr(SourceDocumentCheck, "untellable", untellable)
    with pytest.raises(Disclosure):
        await _walked(database_url)


async def _walked(database_url: str) -> None:
    for seed in range(_MOST):
        async with stage(database_url, user_token_key=new_sealing_key()) as on:
            await walk(on, seed, _OF_ONE)
