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
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import structlog

from bot.card_actions import confirmation
from bot.documents import audience
from bot.documents.audience import GroupListener
from bot.features import source_documents as documents
from bot.features.private_answers import feature as private_answers
from bot.features.source_documents import SourceDocumentCheck
from memory.scope import FeishuPerson
from memory.sealing import new_sealing_key
from tests.support import depth
from tests.support.document_walk import Disclosure, walk
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

STEPS = depth.count("DOCUMENT_WALK", short=100, deep=5000)
SEED = os.environ.get("DOCUMENT_WALK_SEED")
_OF_ONE = 100


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


# Each breaks one rule; none may go unseen.


def _nothing_is_asked_again(on: pytest.MonkeyPatch) -> None:
    async def untellable(*_: object) -> frozenset[str]:
        return frozenset()

    on.setattr(SourceDocumentCheck, "untellable", untellable)


def _what_tools_give_is_not_asked_about(on: pytest.MonkeyPatch) -> None:
    async def may_be_told(*_: object) -> bool:
        return True

    on.setattr(SourceDocumentCheck, "may_be_told", may_be_told)


def _second_hand_is_not_known(on: pytest.MonkeyPatch) -> None:
    on.setattr(SourceDocumentCheck, "sources", frozenset())


def _once_open_is_open(on: pytest.MonkeyPatch) -> None:
    on.setattr(documents, "FRESH_S", 1e9)


def _silence_is_consent(on: pytest.MonkeyPatch) -> None:
    seen = documents._look_at_document

    async def consent(*given: Any) -> str:
        told = await seen(*given)
        return "open" if told == "unknown" else told

    on.setattr(documents, "_look_at_document", consent)


def _who_asks_is_everybody(on: pytest.MonkeyPatch) -> None:
    on.setattr(audience, "everybody_can_open", lambda sharing, *_: sharing.is_open_to_asker)


def _all_are_of_the_tenant(on: pytest.MonkeyPatch) -> None:
    def listener(_: object, member: FeishuPerson) -> GroupListener:
        return GroupListener(member.open_id, is_of_tenant=True)

    on.setattr(audience.GroupAudience, "_listener", listener)


def _sharing_asks_nothing(on: pytest.MonkeyPatch) -> None:
    async def may_tell(*_: object) -> bool:
        return True

    on.setattr(private_answers, "_may_tell", may_tell)


def _presses_ask_nothing(on: pytest.MonkeyPatch) -> None:
    async def may_be_told(*_: object) -> bool:
        return True

    on.setattr(confirmation, "may_be_told", may_be_told)


BREAKS = (
    _nothing_is_asked_again, _what_tools_give_is_not_asked_about, _second_hand_is_not_known,
    _once_open_is_open, _silence_is_consent, _who_asks_is_everybody, _all_are_of_the_tenant,
    _sharing_asks_nothing, _presses_ask_nothing,
)  # fmt: skip
_MOST = 40  # walks
# Walks that show some of them, tried before others.
SHOWN_BY = {
    "_who_asks_is_everybody": 4,
    "_all_are_of_the_tenant": 12,
    "_sharing_asks_nothing": 6,
    "_presses_ask_nothing": 3575344729,
}


@pytest.mark.parametrize("rule", BREAKS)
async def test_a_rule_that_is_broken_is_caught(
    database_url: str, monkeypatch: pytest.MonkeyPatch, rule: Callable[[pytest.MonkeyPatch], None]
) -> None:
    faulthandler.cancel_dump_traceback_later()
    rule(monkeypatch)
    with pytest.raises(Disclosure):
        await _walked(database_url, [SHOWN_BY.get(rule.__name__, 0), *range(_MOST)])


async def _walked(database_url: str, seeds: Iterable[int]) -> None:
    for seed in seeds:
        async with stage(database_url, user_token_key=new_sealing_key()) as on:
            await walk(on, seed, _OF_ONE)
