"""People's own tokens: asked for, kept, handed out to them alone, refreshed by one, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest

from memory.rpc import Rpc
from memory.scope import FeishuPerson
from memory.sealing import Sealer, new_sealing_key
from memory.tables.operations import Operations
from memory.tables.user_tokens import (
    Access,
    AskPlace,
    DeviceCode,
    NoToken,
    RefreshTurn,
    TokenPair,
    UserTokenStore,
    WaitingAnswer,
)
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

KEY = new_sealing_key()
DEVICE = DeviceCode("device-code", "https://accounts.feishu.cn/x?user_code=AB-CD")
SCOPES = ("offline_access", "docx:document:readonly")
PLACE = AskPlace("oc_group", "group", "zh", "oc_group")


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as opened:
        yield opened


@pytest.fixture
def store(rpc: Rpc) -> UserTokenStore:
    return UserTokenStore(rpc, Sealer.of(KEY))


@pytest.fixture
def ann(group: Group) -> FeishuPerson:
    return FeishuPerson("tenant", group.person("ann"))


@pytest.fixture
def bob(group: Group) -> FeishuPerson:
    return FeishuPerson("tenant", group.person("bob"))


def tokens(name: str, *, access_s: int = 7200, refresh: bool = True) -> TokenPair:
    return TokenPair(
        f"access-{name}", access_s, f"refresh-{name}" if refresh else "", 604800, SCOPES
    )


async def ask(store: UserTokenStore, person: FeishuPerson, name: str = "ask-1") -> None:
    await store.ask(
        person, name, scopes=SCOPES, device=DEVICE, life_s=600, interval_s=5, place=PLACE
    )


async def connect(store: UserTokenStore, person: FeishuPerson, given: TokenPair) -> None:
    await ask(store, person)
    assert await store.connect(person, "ask-1", given)
    await store.close_ask(person, "ask-1")


async def test_what_is_asked_for_is_there_until_it_is_answered(
    store: UserTokenStore, ann: FeishuPerson, bob: FeishuPerson
) -> None:
    await ask(store, ann)
    await store.note_card(ann, "ask-1", "om_card", aside=True)
    await store.note_interval(ann, "ask-1", 10)
    found = await store.get(ann)

    assert found
    assert found.ask
    assert (found.granted_ms, found.ask.scopes, found.ask.place) == (None, SCOPES, PLACE)
    answers = [WaitingAnswer("oc_group", f"om_{number}") for number in range(6)]
    await asyncio.gather(*(store.note_waiting(ann, "ask-1", one) for one in answers[:2]))
    waits = await store.get(ann)
    assert waits
    assert waits.ask
    assert set(waits.ask.place.waiting) == set(answers[:2]), "neither takes the other's place"
    for one in answers[2:]:
        await store.note_waiting(ann, "ask-1", one)
    waits = await store.get(ann)
    assert waits
    assert waits.ask
    assert len(waits.ask.place.waiting) == 5
    assert waits.ask.place.waiting[-4:] == tuple(answers[2:])
    assert waits.ask == replace(found.ask, place=replace(PLACE, waiting=waits.ask.place.waiting))
    assert (found.ask.card, found.ask.interval_s, found.ask.outcome) == ("om_card", 10, "")
    assert await store.device(ann, found.ask) == DEVICE
    assert await store.device(bob, found.ask) is None
    assert await store.get(bob) is None

    assert await store.answer(ann, "ask-1", "denied")
    assert not await store.connect(ann, "ask-1", tokens("ann"))
    assert await store.device(ann, found.ask) is None
    await store.close_ask(ann, "ask-1")
    assert await store.get(ann) is None


async def test_a_newer_question_takes_the_place_of_an_older(
    store: UserTokenStore, ann: FeishuPerson
) -> None:
    await ask(store, ann, "ask-1")
    await ask(store, ann, "ask-2")

    assert not await store.connect(ann, "ask-1", tokens("late"))
    assert await store.connect(ann, "ask-2", tokens("ann"))
    assert not await store.connect(ann, "ask-2", tokens("twice"))
    given = await store.use(ann, "holder")
    assert isinstance(given, Access)
    assert (given.token, given.scopes) == ("access-ann", SCOPES)


async def test_each_person_gets_their_own_tokens(
    store: UserTokenStore, ann: FeishuPerson, bob: FeishuPerson
) -> None:
    await connect(store, ann, tokens("ann"))
    await connect(store, bob, tokens("bob", access_s=0))

    of_ann, of_bob = await store.use(ann, "a"), await store.use(bob, "b")
    assert isinstance(of_ann, Access)
    assert of_ann.token == "access-ann"
    assert of_bob == RefreshTurn("refresh-bob")
    assert await store.use(replace(ann, tenant_key="another"), "a") == NoToken()


async def test_the_refresh_token_goes_to_one(store: UserTokenStore, ann: FeishuPerson) -> None:
    await connect(store, ann, tokens("1", access_s=0))

    assert await store.use(ann, "first") == RefreshTurn("refresh-1")
    assert await store.use(ann, "second") == RefreshTurn()
    assert not await store.keep_refreshed(ann, "second", tokens("stolen"))
    assert await store.keep_refreshed(ann, "first", tokens("2"))
    given = await store.use(ann, "second")
    assert isinstance(given, Access)
    assert given.token == "access-2"

    await store.spend(ann, given)
    assert await store.use(ann, "third") == RefreshTurn("refresh-2")
    await store.end_refresh(ann, "third", "")  # it was not used
    assert await store.use(ann, "fourth") == RefreshTurn("refresh-2")
    await store.end_refresh(ann, "fourth", "refused")
    assert await store.use(ann, "fifth") == NoToken("refused")


async def test_after_a_crash_while_refreshing_the_grant_is_over_until_they_are_told(
    store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1", access_s=0))
    assert await store.use(ann, "dead") == RefreshTurn("refresh-1")

    assert [one.why for one in await store.to_tend(stale_s=0) if one.person == ann] == ["stale"]
    assert await store.use(ann, "next", stale_s=0) == NoToken("lost")
    assert not await store.keep_refreshed(ann, "dead", tokens("2"))
    assert [one.why for one in await store.to_tend() if one.person == ann] == ["ended"]
    await store.note_told(ann)
    assert await store.get(ann) is None


async def test_a_grant_that_cannot_be_refreshed_expires(
    store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1", access_s=0, refresh=False))

    assert await store.use(ann, "holder") == NoToken("expired")


async def test_disconnecting_ends_it_and_feishu_ends_what_was_granted_before(
    store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1"))
    found = await store.get(ann)
    assert found
    assert found.granted_ms

    assert not await store.disconnect(ann, before_ms=found.granted_ms - 1000)
    assert isinstance(await store.use(ann, "holder"), Access)
    assert await store.disconnect(ann, before_ms=found.granted_ms + 1)
    assert await store.get(ann) is None
    assert not await store.disconnect(ann)


async def test_what_is_asked_for_anew_survives_the_end_of_the_grant(
    store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1"))
    await ask(store, ann, "ask-2")
    found = await store.get(ann)
    assert found
    assert found.granted_ms

    assert await store.disconnect(ann, before_ms=found.granted_ms + 1)
    assert await store.connect(ann, "ask-2", tokens("2"))


async def test_tokens_are_sealed_anew_when_the_key_is_another(
    rpc: Rpc, store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1"))
    newer = new_sealing_key()
    rotated = UserTokenStore(rpc, Sealer.of(newer, KEY))
    found = await rotated.get(ann)
    assert found

    assert [one.why for one in await rotated.to_tend() if one.person == ann] == ["key"]
    assert isinstance(await rotated.use(ann, "holder"), Access)
    assert await rotated.reseal(ann, found)
    assert await store.use(ann, "holder") == NoToken("lost")  # it has the old key alone
    assert isinstance(await UserTokenStore(rpc, Sealer.of(newer)).use(ann, "holder"), Access)


async def test_the_database_holds_no_token_and_forgetting_leaves_nothing(
    backend: Backend, rpc: Rpc, store: UserTokenStore, ann: FeishuPerson
) -> None:
    await connect(store, ann, tokens("1"))
    await ask(store, ann, "ask-2")
    seals = "select string_agg(s::text, '') from bot_private.user_token_seals s where open_id = %s"
    with psycopg.connect(backend.database_url) as connection:
        [kept] = connection.execute(seals, [ann.open_id]).fetchone() or [""]
        for secret in ("access-1", "refresh-1", "device-code", "user_code"):
            assert secret not in kept
        assert len(kept) > 300

    await Operations(rpc).forget_person(ann.open_id)

    with psycopg.connect(backend.database_url) as connection:
        assert connection.execute(seals, [ann.open_id]).fetchone() == (None,)
    assert await store.get(ann) is None
