"""A token without a turn's claims reaches no table over Supabase's API."""

from __future__ import annotations

import itertools

import httpx
import jwt
import psycopg
import pytest

from lab.doubles.lite import SupabaseLite
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support.backends import SupabaseBackend
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio

AUTH_USER = {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88"}
TABLES = ("agent_messages", "agent_turns", "agent_notes", "agent_working_memory")


async def test_a_signed_in_user_reaches_no_table_over_the_api(
    supabase_lite: SupabaseLite, group: Group
) -> None:
    async with SupabaseBackend(supabase_lite).rpc() as rpc:
        await exchange(MemoryStore(rpc), group.turn(), "Q", "A")
        await MemoryStore(rpc).merge_working_memory(group.turn(), scope="chat", patch={"a": 1})
        await NoteStore(rpc).create(group.turn(), title="a secret", body="", tags=())
    claims = {**AUTH_USER, "role": "authenticated", "aud": "authenticated", "exp": 4102444800}
    token = jwt.encode(claims, supabase_lite.jwt_secret, algorithm="HS256")
    headers = {
        "apikey": supabase_lite.publishable_key,
        "Authorization": f"Bearer {token}",
        "Prefer": "return=representation",
    }
    reached = []
    async with httpx.AsyncClient(
        base_url=f"{supabase_lite.url}/rest/v1", headers=headers
    ) as client:
        for table, method in itertools.product(TABLES, ("GET", "PATCH", "DELETE")):
            change = {"updated_at": "2026-03-03"} if method == "PATCH" else None
            answer = await client.request(method, f"/{table}?tenant_key=neq.nobody", json=change)
            if answer.status_code not in (401, 403) and answer.json() != []:
                reached.append((method, table, answer.text[:100]))

    assert reached == []
    with psycopg.connect(supabase_lite.database_url) as connection:
        for table in TABLES:
            assert connection.execute(f"select 1 from {table} limit 1".encode()).fetchone(), table
