"""The embedding model over real HTTP: what it is sent, and what happens when it does not answer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg import sql
from structlog.testing import capture_logs

from bot.agents import embeddings as embedding_model
from bot.agents.embeddings import Embedder, EmbeddingFailed, find_passages, question_vector_beside
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model_traits import EmbeddingInputs
from bot.answering.between_turns import embed_messages, embed_new, tend_later
from bot.operations.doctor.database import vectors_check
from bot.services import Services
from bot.settings import read
from memory import migrations
from memory.backends.postgres import PostgresRpc
from memory.fallback.breaker import CircuitBreaker
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from sandbox.model.model import ModelServer
from tests.support.forking import run_script
from tests.support.people import Group
from tests.support.postgres import Server

NOW = datetime.now(UTC)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def embedder(endpoint: ModelServer) -> AsyncIterator[Embedder]:
    embedder = _embedder(endpoint)
    yield embedder
    await embedder.close()


def _embedder(endpoint: ModelServer, **options: float) -> Embedder:
    return Embedder(Endpoint("key", endpoint.base_url, retries=0), "stand-in", **options)  # type: ignore[arg-type]


@pytest.fixture
def alice() -> AgentMemoryContext:
    return Group().turn()


async def tell(rpc: PostgresRpc, who: AgentMemoryContext, *texts: str) -> None:
    """Turns whose answer is not yet sent; each text is a question."""
    memory = MemoryStore(rpc)
    for text in texts:
        turn_id = f"om_{uuid.uuid4().hex}"
        await memory.begin_turn(who, turn_id=turn_id, content=text)
        await memory.record_reply(who, turn_id=turn_id, cards=["ok"])


def embedded(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from agent_embeddings").fetchone()
    return row[0] if row else -1


async def test_messages_are_embedded_without_the_names_they_begin_with(
    rpc: PostgresRpc, endpoint: ModelServer, embedder: Embedder, alice: AgentMemoryContext
) -> None:
    await tell(rpc, alice, "@Memo 我们周五上线", "<at id=ou_1></at> lunch?")

    assert await embed_new(rpc, embedder, alice) == 2
    assert await embed_new(rpc, embedder, alice) == 0
    [counted] = embedder._tally.take()
    assert (counted.name, counted.calls) == ("embedding", 1)
    assert counted.tokens_in > 0

    [request] = endpoint.embedded
    assert request["input"] == ["lunch?", "我们周五上线"]
    assert (request["model"], request["encoding_format"]) == ("stand-in", "float")
    assert "dimensions" not in request


async def test_a_job_works_in_batches_and_is_bounded(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    endpoint: ModelServer,
    embedder: Embedder,
    alice: AgentMemoryContext,
) -> None:
    await tell(rpc, alice, *(f"message {n}" for n in range(100)))

    assert await embed_new(rpc, embedder, alice, most=80) == 80
    assert [len(request["input"]) for request in endpoint.embedded] == [64, 16]
    assert endpoint.embedded[0]["input"][0] == "message 99"
    assert await embed_new(rpc, embedder, alice, recent=180) == 10  # and 90 answers
    assert embedded(connection) == 90


async def test_questions_and_messages_are_sent_as_the_model_was_trained(
    rpc: PostgresRpc, endpoint: ModelServer, alice: AgentMemoryContext
) -> None:
    inputs = EmbeddingInputs("e5-query", "e5-passage", "query: ", "passage: ")
    embedder = Embedder(Endpoint("key", endpoint.base_url, retries=0), "e5", inputs=inputs)
    await tell(rpc, alice, "noodles")
    await embed_new(rpc, embedder, alice)
    likeness = await embedder.likeness("lunch?")
    await embedder.close()

    sent = [(one["model"], *one["input"]) for one in endpoint.embedded]
    assert sent == [("e5-passage", "passage: noodles"), ("e5-query", "query: lunch?")]
    assert likeness is not None
    assert likeness.model == embedder.name == "e5/passage:"


async def test_a_question_finds_what_was_said_in_other_words(
    rpc: PostgresRpc, embedder: Embedder, alice: AgentMemoryContext
) -> None:
    await tell(rpc, alice, "The rehearsals begin at nine", "noodles", "tea")
    await embed_new(rpc, embedder, alice)
    question = "rehearsing"

    assert await MemoryStore(rpc).find(alice, "rehearsable", now=NOW) == ()
    found = await find_passages(
        MemoryStore(rpc), embedder, alice, question, now=NOW, scope="thread"
    )

    assert found[0].question == "The rehearsals begin at nine"


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ({"status": 500}, "status_500"),
        ({"status": 429}, "rate_limited"),
        ({"delay_s": 20}, "timeout"),
    ],
)
async def test_without_a_vector_in_time_the_words_alone_decide(
    rpc: PostgresRpc,
    endpoint: ModelServer,
    alice: AgentMemoryContext,
    faults: dict[str, float],
    reason: str,
) -> None:
    await tell(rpc, alice, "noodles", "tea")
    embedder = _embedder(endpoint, question_within_s=0.3 if reason == "timeout" else 10)
    endpoint.embedding_faults = faults
    failures = _failures(reason)

    with capture_logs() as logs:
        async with asyncio.timeout(60):
            found = await find_passages(
                MemoryStore(rpc), embedder, alice, "noodles", now=NOW, scope="thread"
            )

    assert [passage.question for passage in found][:1] == ["noodles"]
    assert [(line["event"], line["reason"]) for line in logs] == [("embedding.unavailable", reason)]
    assert _failures(reason) == failures + 1
    await embedder.close()


async def test_an_endpoint_that_is_gone_is_no_error_for_the_question(
    endpoint: ModelServer, embedder: Embedder
) -> None:
    await endpoint.stop()

    assert await embedder.likeness("noodles") is None
    with pytest.raises(EmbeddingFailed) as failed:
        await embedder.of_messages(["noodles"])
    assert failed.value.reason == "connection"


def _failures(reason: str) -> float:
    name = "bot_embedding_failures_total"
    return REGISTRY.get_sample_value(name, {"reason": reason}) or 0.0


async def test_a_message_that_is_refused_keeps_no_other_from_its_vector(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    endpoint: ModelServer,
    embedder: Embedder,
    alice: AgentMemoryContext,
) -> None:
    await tell(rpc, alice, *(f"message {n}" for n in range(9)), "forbidden")
    endpoint.embedding_faults = {"refuse": "forbidden"}

    assert await embed_new(rpc, embedder, alice) == 9
    assert embedded(connection) == 9


async def test_the_background_job_embeds_and_leaves_failures_to_a_later_turn(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    endpoint: ModelServer,
    embedder: Embedder,
    alice: AgentMemoryContext,
) -> None:
    asked: list[AgentMemoryContext] = []

    async def defer(context: AgentMemoryContext) -> None:
        asked.append(context)

    services = cast(Services, SimpleNamespace(rpc=rpc, embedder=embedder, queue_tending=defer))
    await tell(rpc, alice, "noodles")
    await tend_later(services, alice, OpenTurn("open", 1))
    await tend_later(services, alice, OpenTurn("open", 1, degraded=True))
    assert asked == [alice]

    endpoint.embedding_faults = {"status": 503}
    with capture_logs() as logs:
        await embed_messages(services, alice)
    assert logs == [
        {"event": "embedding.postponed", "reason": "status_503", "log_level": "warning"}
    ]
    endpoint.embedding_faults = {}
    await embed_messages(services, alice)
    assert embedded(connection) == 1


async def test_the_dimensions_asked_for_are_those_that_are_kept(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    endpoint: ModelServer,
    alice: AgentMemoryContext,
) -> None:
    await tell(rpc, alice, "noodles")
    embedder = _embedder(endpoint, dimensions=64)

    await embed_new(rpc, embedder, alice)

    rows = connection.execute(
        "select model, extensions.vector_dims(embedding) from agent_embeddings"
    ).fetchall()
    assert rows == [("stand-in/64", 64)]
    assert endpoint.embedded[0]["dimensions"] == 64
    await embedder.close()


# A database without vectors, and operators


async def test_without_pgvector_recall_goes_by_words_until_the_next_migration(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    database_url: str,
    embedder: Embedder,
    alice: AgentMemoryContext,
) -> None:
    connection.execute("drop table agent_embeddings")
    connection.execute("drop trigger agent_messages_drop_embedding on agent_messages")
    connection.execute("drop extension vector")
    await tell(rpc, alice, "noodles", "tea")

    with capture_logs() as logs:
        assert await embed_new(rpc, embedder, alice) == 0
    assert logs[0]["event"] == "embedding.no_vectors"
    found = await find_passages(
        MemoryStore(rpc), embedder, alice, "noodles", now=NOW, scope="thread"
    )
    assert found[0].question == "noodles"
    assert "no vectors" in _run(database_url, "memory", "embed", EMBEDDING_MODEL="m").stderr

    assert _run(database_url, "migrate").stdout == "up to date (0 applied now)\n"
    assert await embed_new(rpc, embedder, alice) == 2


def test_an_owner_who_may_not_install_it_is_told_what_to_run(
    postgres_server: Server, migrated_template: str
) -> None:
    owner = f"owner_{uuid.uuid4().hex[:8]}"
    create = "create role {} login nosuperuser createrole createdb bypassrls"
    postgres_server.execute(sql.SQL(create).format(sql.Identifier(owner)))
    for role in ("authenticated", "service_role", "bot_console", "bot_verifier"):
        grant = sql.SQL("grant {} to {} with admin option, set true")
        postgres_server.execute(grant.format(*map(sql.Identifier, (role, owner))))
    with postgres_server.fresh_database(owner=owner) as url:
        migrations.apply_migrations(url)
        told = _run(url, "migrate").stdout
        assert "only a superuser may run: create schema if not exists extensions" in told

        with psycopg.connect(postgres_server.database(url.split("/")[3].split("?")[0])) as root:
            root.execute("create schema extensions")
            root.execute("create extension vector schema extensions")
            root.execute(
                sql.SQL("grant usage on schema extensions to {} with grant option").format(
                    sql.Identifier(owner)
                )
            )
        assert _run(url, "migrate").stdout == "up to date (0 applied now)\n"
    postgres_server.execute(sql.SQL("drop role {}").format(sql.Identifier(owner)))


async def test_an_operator_embeds_everything_and_is_told_what_is_left(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    database_url: str,
    endpoint: ModelServer,
    alice: AgentMemoryContext,
) -> None:
    await tell(rpc, alice, "noodles", "tea", "forbidden")
    await tell(rpc, Group().turn("bob"), "coffee")
    model = {"EMBEDDING_MODEL": "stand-in", "EMBEDDING_BASE_URL": endpoint.base_url}
    endpoint.embedding_faults = {"refuse": "forbidden"}

    first = await asyncio.to_thread(_run, database_url, "memory", "embed", **model)
    endpoint.embedding_faults = {"status": 503}
    away = await asyncio.to_thread(_run, database_url, "memory", "embed", "--json", **model)
    endpoint.embedding_faults = {}
    last = await asyncio.to_thread(_run, database_url, "memory", "embed", "--json", **model)

    assert (first.returncode, first.stdout) == (1, "3 messages embedded by stand-in, 1 left\n")
    assert away.returncode == 1
    assert "status_503" in json.loads(away.stdout)["failure"]
    assert last.returncode == 0
    assert json.loads(last.stdout) == {
        "model": "stand-in", "embedded": 1, "left": 0, "dropped": 0, "failure": None,
    }  # fmt: skip
    assert embedded(connection) == 4
    without = await asyncio.to_thread(_run, database_url, "memory", "embed")
    assert (without.returncode, "EMBEDDING_MODEL" in without.stderr) == (2, True)


async def test_the_old_model_answers_until_another_has_all_its_vectors(
    rpc: PostgresRpc,
    connection: psycopg.Connection,
    database_url: str,
    endpoint: ModelServer,
    embedder: Embedder,
    alice: AgentMemoryContext,
) -> None:
    await tell(rpc, alice, "The rehearsals begin at nine", "noodles", "tea")
    await embed_new(rpc, embedder, alice)
    model = {"EMBEDDING_MODEL": "stand-in", "EMBEDDING_BASE_URL": endpoint.base_url}
    settings = read(database_url=database_url, embedding_model="next")
    before = await asyncio.to_thread(vectors_check, settings, database_url)

    prepared = await asyncio.to_thread(
        _run, database_url, "memory", "embed", "--model", "next", **model
    )
    assert prepared.returncode == 0, prepared.stderr
    assert "3 messages embedded by next, 0 left" in prepared.stdout
    assert "Set EMBEDDING_MODEL=next" in prepared.stdout
    likeness = await embedder.likeness("rehearsing")
    found = await MemoryStore(rpc).find(alice, "rehearsing", now=NOW, likeness=likeness)
    assert found[0].question == "The rehearsals begin at nine"
    assert embedded(connection) == 6
    after = await asyncio.to_thread(vectors_check, settings, database_url)
    present = read(database_url=database_url, embedding_model="stand-in")
    beside = await asyncio.to_thread(vectors_check, present, database_url)
    assert before is not None
    assert beside is not None
    assert after is not None
    assert (before.state, before.command, after.state) == ("warn", "scripts/memory embed", "ok")
    assert "3 messages" in before.sentence.en
    assert "(0% have one)" in before.sentence.en
    assert beside.sentence.en == "Every message has one of stand-in. next: 100%."

    model["EMBEDDING_MODEL"] = "next"
    changed = await asyncio.to_thread(_run, database_url, "memory", "embed", **model)
    assert "3 embeddings of other models dropped" in changed.stdout
    assert embedded(connection) == 3


def _run(url: str, script: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess:
    ours = ("FEISHU_", "SUPABASE_", "OPENAI_", "EMBEDDING_", "DATABASE_URL")
    kept: Mapping[str, str] = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    endpoint = {"EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1"}
    environment = {**kept, **endpoint, "DATABASE_URL": url, **settings}
    return run_script(script, *arguments, env=environment)


async def test_questions_do_not_wait_for_a_model_that_is_away_and_one_tries_it_again(
    endpoint: ModelServer,
) -> None:
    now = 1000.0
    embedder = _embedder(endpoint, question_within_s=0.05)
    embedder._breaker = CircuitBreaker(window_s=600, probe_every_s=5, clock=lambda: now)
    endpoint.embedding_faults = {"delay_s": 60}
    with capture_logs() as logs:
        assert [await embedder.likeness("launch?") for _ in range(3)] == [None] * 3
        assert embedder.is_away
        assert len(endpoint.embedded) == 3
        assert [await embedder.likeness("launch?") for _ in range(9)] == [None] * 9
        assert len(endpoint.embedded) == 3, "nobody asks what is away"
        with question_vector_beside(embedder, "launch?") as vector:
            assert vector is None

        endpoint.embedding_faults = {}
        now += 6
        assert await embedder.likeness("launch?") is None
        assert embedder._probe
        assert await embedder._probe
        assert not embedder.is_away
        assert await embedder.likeness("launch?")
    await embedder.close()

    said = [one["event"] for one in logs]
    assert said.count("embedding.away") == said.count("embedding.back") == 1


async def test_a_model_that_is_slow_three_times_in_a_row_counts_as_away(
    endpoint: ModelServer, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_model, "SLOW_EMBEDDING_S", 0.0)
    for _ in range(3):
        assert await embedder.likeness("launch?"), "what came is used"

    assert embedder.is_away


async def test_a_text_that_is_refused_says_nothing_about_the_model(
    endpoint: ModelServer, embedder: Embedder
) -> None:
    endpoint.embedding_faults = {"refuse": "launch"}
    for _ in range(5):
        assert await embedder.likeness("launch?") is None

    assert not embedder.is_away


async def test_the_vector_of_a_question_is_on_its_way_while_other_work_is_done(
    endpoint: ModelServer, embedder: Embedder
) -> None:
    with question_vector_beside(embedder, "launch?") as vector:
        while not endpoint.embedded:  # noqa: ASYNC110  it is the stand-in's
            await asyncio.sleep(0.01)
        assert vector
        assert await vector.likeness("launch?")

    endpoint.embedding_faults = {"delay_s": 60}
    with question_vector_beside(embedder, "another?") as vector:
        assert vector
    with pytest.raises(asyncio.CancelledError):
        await vector._asked
