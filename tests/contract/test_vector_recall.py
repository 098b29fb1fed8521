"""Recall by meaning, over every backend: what is found, within which scope, and what goes away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest

from memory.errors import IdentityMissing
from memory.models import QuestionEmbedding
from memory.recall.passages import RecallScope
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.derived import EmbeddingStore, Unembedded
from tests.support.backends import Backend
from tests.support.people import Group

NOW = datetime.now(UTC)

pytestmark = pytest.mark.anyio

MODEL = "m"
# What texts are about, as directions; no model of language is needed to say which are alike.
TRAVEL, FOOD, WORK = [1.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 0.1, 1.0]


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


async def tell(rpc: Rpc, who: AgentMemoryContext, name: str, text: str, answer: str = "ok") -> str:
    """A whole turn, its answer sent."""
    memory, turn_id = MemoryStore(rpc), f"{who.root_id}-{name}"
    await memory.begin_turn(who, turn_id=turn_id, content=text)
    await memory.record_reply(who, turn_id=turn_id, cards=[answer])
    await memory.mark_sent(
        who, turn_id=turn_id, chunk=0, content=answer, message_id=f"{turn_id}-card"
    )
    return turn_id


async def embed(
    rpc: Rpc, who: AgentMemoryContext, about: dict[str, list[float]], model: str = MODEL
) -> int:
    """Gives the messages that are named by their text the direction they are about."""
    store = EmbeddingStore(rpc)
    missing = await store.missing(who, model, limit=100)
    assert missing is not None
    pairs = [(one, about[one.content]) for one in missing if one.content in about]
    return await store.save(who, model, pairs)


async def find(
    rpc: Rpc,
    who: AgentMemoryContext,
    query: str,
    direction: list[float],
    *,
    scope: RecallScope = "thread",
    model: str = MODEL,
    weight: float = 0.5,
    before_id: int | None = None,
) -> list[str]:
    likeness = QuestionEmbedding(model, json.dumps(direction), weight)
    found = await MemoryStore(rpc).find(
        who, query, now=NOW, scope=scope, k=10, before_id=before_id, likeness=likeness
    )
    return [passage.question for passage in found]


async def three_turns(rpc: Rpc, who: AgentMemoryContext) -> None:
    for n, text in enumerate(("We fly to Kyoto", "noodles for lunch", "the report is late")):
        await tell(rpc, who, str(n), text)
    about = {"We fly to Kyoto": TRAVEL, "noodles for lunch": FOOD, "the report is late": WORK}
    assert await embed(rpc, who, about) == 3


async def test_what_was_said_in_other_words_is_found(rpc: Rpc, group: Group) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)

    assert await MemoryStore(rpc).find(alice, "旅行", now=NOW) == ()
    assert (await find(rpc, alice, "旅行", TRAVEL))[0] == "We fly to Kyoto"
    assert (await find(rpc, alice, "旅行", WORK))[0] == "the report is late"


async def test_what_was_said_counts_more_than_an_answer_that_is_as_much_like_it(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    await tell(rpc, alice, "said", "We fly to Kyoto", "fine")
    for n in range(3):
        await tell(rpc, alice, f"between{n}", f"noodles {n}", "fine")
    await tell(rpc, alice, "answered", "and the report", "as for Kyoto")
    others = {f"noodles {n}": FOOD for n in range(3)}
    about = {"We fly to Kyoto": TRAVEL, "as for Kyoto": TRAVEL, "and the report": WORK, **others}
    assert await embed(rpc, alice, about) == 6

    found = await find(rpc, alice, "旅行", TRAVEL)
    assert found.index("We fly to Kyoto") < found.index("and the report")


async def test_the_weight_decides_between_words_and_meaning(rpc: Rpc, group: Group) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)

    assert (await find(rpc, alice, "noodles", TRAVEL, weight=0.1))[0] == "noodles for lunch"
    assert (await find(rpc, alice, "noodles", TRAVEL, weight=0.9))[0] == "We fly to Kyoto"
    assert await find(rpc, alice, "旅行", TRAVEL, weight=0) == []


async def test_meaning_decides_where_even_the_best_turn_has_little_of_the_question(
    rpc: Rpc, group: Group
) -> None:
    """Elsewhere, at a weight of 0.2, all that share a word come before what shares none."""
    alice = group.turn()
    said = ["the quarterly report is late", "the holiday report", "a report of the audit"]
    between = [f"noodles {n}" for n in range(6)]
    for n, text in enumerate([*said, *between, "We fly to Kyoto"]):
        await tell(rpc, alice, str(n), text)
    about = dict.fromkeys([*said, *between], FOOD) | {"We fly to Kyoto": TRAVEL}
    assert await embed(rpc, alice, about) == 10

    little = "report airport luggage passport itinerary departure"
    found = await find(rpc, alice, little, TRAVEL, weight=0.2)
    assert found[1] == "We fly to Kyoto", "after the best by words, before the others"
    much = await find(rpc, alice, "the quarterly report is late", TRAVEL, weight=0.2)
    assert much[0] == said[0]
    assert set(much[:3]) == set(said)


async def test_vectors_are_compared_from_near_their_middle(rpc: Rpc, group: Group) -> None:
    """Of texts that a model takes all for alike the nearest is the one that differs as the question
    does, not the one that has most of what they have in common."""
    alice = group.turn()
    usual = {f"noodles {n}": [1.0, 0.0, 0.0] for n in range(20)}
    about = {"the report is late": [1.0, 0.05, 0.0], **usual, "We fly to Kyoto": [1.0, 0.6, 0.25]}
    for n, text in enumerate(about):
        await tell(rpc, alice, str(n), text)
    assert await embed(rpc, alice, about) == 22

    found = await find(rpc, alice, "旅行", [1.0, 0.3, 0.0])
    assert found[0] == "We fly to Kyoto"
    assert found.index("We fly to Kyoto") < found.index("the report is late")


async def test_no_vector_is_ever_given_back(rpc: Rpc, group: Group) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)

    likeness = QuestionEmbedding(MODEL, json.dumps(TRAVEL), 0.5)
    found = await MemoryStore(rpc).find(alice, "旅行", now=NOW, likeness=likeness)

    assert "0.1" not in repr([(p.question, p.answer, p.before, p.after) for p in found])
    missing = await EmbeddingStore(rpc).missing(alice, "another", limit=10)
    assert missing is not None
    assert {field for one in missing for field in one.__slots__} == {"id", "content", "digest"}


async def test_rows_of_another_model_or_length_do_not_count_and_are_embedded_again(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)

    assert await find(rpc, alice, "旅行", TRAVEL, model="another") == []
    assert await find(rpc, alice, "旅行", [1.0, 0.0]) == []
    assert await embed(rpc, alice, {"We fly to Kyoto": WORK, "ok": FOOD}, model="another") == 4
    assert (await find(rpc, alice, "旅行", WORK, model="another"))[0] == "We fly to Kyoto"
    assert "noodles for lunch" in {
        one.content for one in await EmbeddingStore(rpc).missing(alice, "another", limit=10) or ()
    }


async def test_meaning_widens_with_the_scope_and_never_beyond(rpc: Rpc, group: Group) -> None:
    contexts = {
        "here": group.turn(),
        "second thread": group.turn(thread="second"),
        "other chat": group.turn(chat="there", thread="third"),
        "of bob": group.turn("bob", thread="fourth"),
        "other tenant": group.turn(tenant="other", thread="fifth"),
    }
    for name, who in contexts.items():
        for text, direction in ((f"trip {name}", TRAVEL), (f"meal {name}", FOOD)):
            await tell(rpc, who, text.split()[0], text)
            assert await embed(rpc, who, {text: direction}) == 1

    async def trips(scope: RecallScope, who: AgentMemoryContext = contexts["here"]) -> set[str]:
        found = await find(rpc, who, "旅行", TRAVEL, scope=scope)
        return {text for text in found if text.startswith("trip")}

    assert await trips("thread") == {"trip here"}
    in_the_chat = {"trip here", "trip second thread", "trip of bob"}
    assert await trips("chat") == await trips("everywhere") == in_the_chat
    assert await trips("everywhere", group.turn(sender="bob")) == in_the_chat


async def test_what_the_prompt_already_has_is_not_found_by_meaning_either(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)
    hits = await MemoryStore(rpc).find(alice, "Kyoto noodles report", now=NOW, k=10)
    [report] = [hit.message_id for hit in hits if hit.question == "the report is late"]

    assert "the report is late" not in await find(rpc, alice, "旅行", WORK, before_id=report)


async def test_nobody_reaches_another_persons_messages_to_embed(rpc: Rpc, group: Group) -> None:
    alice, bob = group.turn(), group.turn("bob")
    await tell(rpc, alice, "1", "my secret")
    store = EmbeddingStore(rpc)
    [answer, secret] = await store.missing(alice, MODEL, limit=10) or ()

    assert secret.content == "my secret"
    assert answer.content == "ok"
    assert await store.missing(bob, MODEL, limit=10) == ()
    assert await store.save(bob, MODEL, [(secret, TRAVEL)]) == 0
    assert await store.missing(group.turn(tenant="other"), MODEL, limit=10) == ()
    with pytest.raises(IdentityMissing):
        await store.missing(replace(alice, user_id=""), MODEL, limit=10)


async def test_a_text_that_has_changed_meanwhile_is_not_given_the_old_vector(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    await tell(rpc, alice, "1", "We fly to Kyoto")
    store = EmbeddingStore(rpc)
    missing = await store.missing(alice, MODEL, limit=10) or ()
    stale = [(Unembedded(one.id, one.content, "0" * 32), TRAVEL) for one in missing]

    assert await store.save(alice, MODEL, stale) == 0


async def test_only_what_was_delivered_is_embedded_newest_first_and_bounded(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    for n in range(3):
        await tell(rpc, alice, str(n), f"question {n}", f"answer {n}")
    await MemoryStore(rpc).begin_turn(alice, turn_id=f"{alice.root_id}-p", content="pending?")
    await MemoryStore(rpc).record_reply(alice, turn_id=f"{alice.root_id}-p", cards=["not yet"])
    store = EmbeddingStore(rpc)

    async def texts(limit: int, recent: int | None) -> list[str]:
        missing = await store.missing(alice, MODEL, limit=limit, recent=recent)
        return [one.content for one in missing or ()]

    assert await texts(3, None) == ["pending?", "answer 2", "question 2"]
    assert await texts(10, 4) == ["pending?", "answer 2", "question 2"]


async def test_an_operator_sees_what_is_left_to_embed(rpc: Rpc, group: Group) -> None:
    alice, bob = group.turn(), group.turn("bob")
    for who in (alice, bob):
        await tell(rpc, who, who.user_id, "We fly to Kyoto")
    await embed(rpc, alice, {"We fly to Kyoto": TRAVEL})

    backlog = await EmbeddingStore(rpc).backlog(MODEL) or ()

    left = {one.context: one.messages for one in backlog if group.mark in one.context.user_id}
    assert left == {replace(alice, chat_type=""): 1, replace(bob, chat_type=""): 2}


async def test_a_vector_goes_with_its_message(rpc: Rpc, backend: Backend, group: Group) -> None:
    alice = group.turn()
    await three_turns(rpc, alice)
    turn_ids = [f"{alice.root_id}-{n}" for n in range(3)]

    await MemoryStore(rpc).take_back(turn_ids[0], alice.chat_id)
    assert _embedded(backend, alice) == 2
    await rpc.call(
        "forget_person", {"p_user_id": alice.user_id, "p_tenant_key": alice.tenant_key}, None
    )
    assert _embedded(backend, alice) == 0


def _embedded(backend: Backend, who: AgentMemoryContext) -> int:
    with psycopg.connect(backend.database_url) as connection:
        row = connection.execute(
            "select count(*) from agent_embeddings where user_id = %s", [who.user_id]
        ).fetchone()
    return row[0] if row else -1
