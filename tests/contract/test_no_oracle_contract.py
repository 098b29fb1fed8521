"""Another's id and an unknown id are answered alike, over every transport; and so are tables."""

from __future__ import annotations

import httpx
import jwt
import psycopg
import pytest

from lab.doubles.lite import SupabaseLite
from memory.errors import StoreError
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support.backends import Backend, SupabaseBackend
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio

AUTH_USER = {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88"}
TABLES = ("agent_messages", "agent_turns", "agent_notes", "agent_working_memory")


async def _said(backend: Backend, who: AgentMemoryContext, function: str, **params: object) -> str:
    """The answer, or the refusal, without the id that was asked for."""
    asked = str(params.get("p_note_id") or params.get("p_turn_id"))
    async with backend.rpc() as rpc:
        try:
            said = str(await rpc.call(function, params, who))
        except StoreError as refused:
            said = f"{type(refused).__name__} {refused.code} {refused}"
    return said.replace(asked, "…")


@pytest.mark.parametrize("function", ["get_note", "delete_note", "record_reply"])
async def test_whether_there_is_such_a_row_elsewhere_is_not_told(
    memory: MemoryStore, backend: Backend, group: Group, function: str
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob", chat="elsewhere")
    await exchange(memory, alice, "Q", "A")
    async with backend.rpc() as rpc:
        note = await NoteStore(rpc).create(alice, title="a secret", body="", tags=())
    place = {"p_tenant_key": bob.tenant_key, "p_chat_id": bob.chat_id}
    calls: dict[str, tuple[str, str, dict[str, object]]] = {
        "get_note": ("p_note_id", note.id, {**bob.identity(), **place}),
        "delete_note": ("p_note_id", note.id, {**bob.identity(), "p_tenant_key": bob.tenant_key}),
        "record_reply": (
            "p_turn_id",
            f"om_Q_{alice.chat_id}",
            {**bob.identity(), "p_cards": "[]", "p_tool_calls": "[]"},
        ),
    }
    name, theirs, params = calls[function]

    of_alice = await _said(backend, bob, function, **params, **{name: theirs})
    of_nobody = await _said(backend, bob, function, **params, **{name: "unknown id"})

    assert of_alice == of_nobody
    assert "secret" not in of_alice


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_a_signed_in_user_reaches_no_table_over_the_api(
    supabase_lite: SupabaseLite, group: Group, table: str, method: str
) -> None:
    async with SupabaseBackend(supabase_lite).rpc() as rpc:
        await exchange(MemoryStore(rpc), group.turn(), "Q", "A")
        await MemoryStore(rpc).merge_working_memory(group.turn(), scope="chat", patch={"a": 1})
        await NoteStore(rpc).create(group.turn(), title="a secret", body="", tags=())
    claims = {**AUTH_USER, "role": "authenticated", "aud": "authenticated", "exp": 4102444800}
    token = jwt.encode(claims, supabase_lite.jwt_secret, algorithm="HS256")
    async with httpx.AsyncClient(base_url=f"{supabase_lite.url}/rest/v1") as client:
        answer = await client.request(
            method,
            f"/{table}?tenant_key=neq.nobody",
            json={"updated_at": "2026-03-03"} if method == "PATCH" else None,
            headers={
                "apikey": supabase_lite.publishable_key,
                "Authorization": f"Bearer {token}",
                "Prefer": "return=representation",
            },
        )

    assert answer.status_code in (401, 403) or answer.json() == []
    with psycopg.connect(supabase_lite.database_url) as connection:
        assert connection.execute(f"select 1 from {table} limit 1".encode()).fetchone()
