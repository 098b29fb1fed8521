"""A direct connection is shared by everybody: what one call leaves behind on it."""

from __future__ import annotations

import pytest

from memory.errors import BadPatch
from memory.postgres import PostgresRpc, connection_pool
from memory.store import MemoryStore
from tests.support.people import Group

pytestmark = pytest.mark.anyio

_IDENTITY = "select current_user::text, current_setting('request.jwt.claims', true)"


@pytest.mark.parametrize("outcome", ["answered", "refused"])
async def test_a_call_leaves_nothing_of_its_identity_on_the_connection(
    shared_database_url: str, outcome: str
) -> None:
    pool = connection_pool(shared_database_url, size=1)
    await pool.open()
    memory, turn = MemoryStore(PostgresRpc(pool)), Group().turn()
    if outcome == "answered":
        await memory.merge_working_memory(turn, scope="chat", patch={"a": 1})
    else:
        with pytest.raises(BadPatch):
            await memory.merge_working_memory(turn, scope="chat", patch=[])  # type: ignore[arg-type]

    async with pool.connection() as connection:
        cursor = await connection.execute(_IDENTITY)
        assert await cursor.fetchone() == ("postgres", "")
    await memory.close()
