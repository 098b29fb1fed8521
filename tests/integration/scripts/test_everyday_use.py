"""`scripts/check_memory` is never wrong about ordinary use.

CHECK_MEMORY_COUNT=n plays so many random histories, of seeds from CHECK_MEMORY_FROM
on if that is given.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from scripts import check_memory
from scripts.operating.desk import open_desk
from tests.support import depth
from tests.support.everyday import DONE, STEP_KINDS, History, Street, street

pytestmark = pytest.mark.anyio

COUNT = depth.count("CHECK_MEMORY_COUNT", short=15, deep=500)
DICE = depth.dice()
FROM = os.environ.get("CHECK_MEMORY_FROM")
A_DAY = timedelta(days=1)
# What may wait for a while is judged as if that were over.
_AGE = (
    "update agent_working_memory set updated_at = updated_at - interval '2 days'"
    " where updated_at > now() - interval '1 day'"
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Half a dozen lines a turn tell nothing here."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


async def test_whatever_people_do_nothing_is_found(
    database_url: str, record_property: object
) -> None:
    faulthandler.cancel_dump_traceback_later()  # whoever asks for many waits for them
    async with street(database_url) as there:
        for number in range(COUNT):
            await _play(there, int(FROM) + number if FROM else DICE.randrange(10**9))
    record_property("done", dict(DONE))  # type: ignore[operator]
    assert COUNT < 50 or {step.__name__ for step in STEP_KINDS} <= DONE.keys()


async def _play(there: Street, seed: int) -> None:
    """One history; what fails tells it."""
    began, history = datetime.now(UTC), History(there, random.Random(seed))
    try:
        await history.live()
        assert await _found(there, began) == []
    except BaseException as exc:
        exc.add_note("\n".join([*history.story, f"CHECK_MEMORY_FROM={seed}"]))
        raise


async def _found(there: Street, began: datetime) -> list[object]:
    """What the script finds a day later in what was written since `began`."""
    there.database.execute("set session_replication_role = replica")
    there.database.execute(_AGE)
    there.database.execute("set session_replication_role = origin")
    given = check_memory.arguments().parse_args(["--since", began.isoformat(), "--limit", "1000"])
    async with open_desk(there.settings) as desk:
        result = await check_memory.examine(desk, given, datetime.now(UTC) + A_DAY)
    return list(result.findings)
