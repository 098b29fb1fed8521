"""A person's token: for calls made for them alone, refreshed once by one worker, lost for nobody
without a word."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.feishu.authorization import NotGranted, UserAuthorization, accounts_origin
from bot.feishu.errors import Unreachable
from bot.people.personal_access import NotConnected, PersonalAccess, UserToken
from lab.doubles.processes import ROOT
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.scope import FeishuPerson
from memory.sealing import Sealer, new_sealing_key
from memory.tables.user_tokens import (
    Access,
    AskPlace,
    DeviceCode,
    NoToken,
    RefreshTurn,
    UserTokenStore,
)
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.errors import GrantRefused
from sandbox.faults import PreparedFault
from sandbox.server import SandboxServer
from tests.support import depth

pytestmark = pytest.mark.anyio

KEY = new_sealing_key()
SCOPES = ("offline_access", "docx:document:readonly")
WORKERS, KILLS = 4, depth.count("TOKEN_KILLS", short=4, deep=20)
CALLS = int(os.environ.get("TOKEN_CALLS") or 300)
STALE_S = 4


@dataclass
class Feishu:
    """The stand-in platform over HTTP; it counts what refreshing was asked for."""

    pause_s: float = 0.0
    refused: Counter[str] = field(default_factory=Counter)
    refreshed: int = 0
    issued: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        app = create_sandbox(SandboxConfig(rate_limits=False), post=lambda *_: (200, b"{}"))
        self.platform = app.extensions["sandbox"]
        self.server = SandboxServer(app, 0, None)
        self.domain = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        tokens = self.platform.user_tokens
        issue = tokens.refreshed

        def counting(token: str, scope: str = "") -> Any:
            try:
                issued = issue(token, scope)
            except GrantRefused as exc:
                self.refused[str(exc.code)] += 1
                raise
            self.refreshed += 1
            self.issued.set()
            time.sleep(self.pause_s)
            return issued

        tokens.refreshed = counting

    def people(self, most: int) -> list[FeishuPerson]:
        world = self.platform.world
        found = [one.open_id for one in world.people.values() if one.kind == "user"]
        return [FeishuPerson(self.platform.config.tenant_key, one) for one in found[:most]]

    def approve(self, device_code: str, open_id: str) -> None:
        made = self.platform.user_tokens.requests[device_code]
        made.outcome, made.open_id = "approved", open_id

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def feishu() -> Iterator[Feishu]:
    made = Feishu()
    yield made
    made.close()


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[UserTokenStore]:
    pool = connection_pool(database_url)
    await pool.open()
    rpc = PostgresRpc(pool)
    yield UserTokenStore(rpc, Sealer.of(KEY))
    await rpc.close()


@pytest.fixture
async def access(feishu: Feishu, store: UserTokenStore) -> AsyncIterator[PersonalAccess]:
    config = feishu.platform.config
    authorization = UserAuthorization(feishu.domain, config.app_id, config.app_secret)
    made = PersonalAccess(store, authorization, stale_s=STALE_S)
    yield made
    await made.close()


async def connect(feishu: Feishu, access: PersonalAccess, person: FeishuPerson) -> bool:
    """False: they ended it meanwhile."""
    link = await access.authorization.begin(SCOPES)
    feishu.approve(link.device_code, person.open_id)
    pair = await access.authorization.poll(link.device_code)
    store, ask = access.store, link.device_code[:8]
    await store.ask(
        person,
        ask,
        scopes=SCOPES,
        device=DeviceCode(link.device_code, link.link),
        life_s=link.life_s,
        interval_s=link.interval_s,
        place=AskPlace(),
    )
    connected = await store.connect(person, ask, pair)
    await store.close_ask(person, ask)
    return connected


async def spend(store: UserTokenStore, person: FeishuPerson) -> None:
    """The next call has to refresh, unless one does already."""
    found = await store.use(person, "looks")
    if isinstance(found, Access):
        await store.spend(person, found)
    elif isinstance(found, RefreshTurn) and found.refresh:
        await store.end_refresh(person, "looks", "")


async def given(token: UserToken) -> UserToken:
    return token


async def test_the_link_is_of_the_accounts_of_the_same_brand() -> None:
    assert accounts_origin("https://open.feishu.cn") == "https://accounts.feishu.cn"
    assert accounts_origin("https://open.larksuite.com") == "https://accounts.larksuite.com"
    assert accounts_origin("http://127.0.0.1:8080") == "http://127.0.0.1:8080"


async def test_what_feishu_says_to_a_poll_has_a_kind(
    feishu: Feishu, access: PersonalAccess
) -> None:
    authorization, kinds = access.authorization, []
    link = await authorization.begin(SCOPES)
    assert link.link.startswith(f"{feishu.domain}/")
    assert (link.life_s, link.interval_s) == (600, 1)
    for outcome in ("waiting", "waiting", "refused"):
        feishu.platform.user_tokens.requests[link.device_code].outcome = outcome
        with pytest.raises(NotGranted) as refused:
            await authorization.poll(link.device_code)
        kinds.append(refused.value.kind)
    with pytest.raises(NotGranted) as refused:
        await authorization.poll("unknown")

    assert [*kinds, refused.value.kind] == ["pending", "slow_down", "denied", "expired"]


async def test_each_call_has_the_token_of_its_person_and_it_is_refreshed_when_it_ends(
    feishu: Feishu, store: UserTokenStore, access: PersonalAccess
) -> None:
    ann, bob = feishu.people(2)
    await connect(feishu, access, ann)
    first = await access.call(ann, given)
    with pytest.raises(NotConnected):
        await access.call(bob, given)
    await connect(feishu, access, bob)
    await spend(store, ann)
    second = await access.call(ann, given)

    assert first.open_id == second.open_id == ann.open_id
    assert first.access_token != second.access_token
    assert await access.authorization.who(second.access_token) == ann.open_id
    assert feishu.refreshed == 1
    assert second.access_token not in f"{second!r} {second}"


async def test_a_token_that_feishu_does_not_take_is_refreshed_once(
    feishu: Feishu, access: PersonalAccess
) -> None:
    (ann,) = feishu.people(1)
    await connect(feishu, access, ann)
    tokens = feishu.platform.user_tokens

    async def look(token: UserToken) -> str:
        return await access.authorization.who(token.access_token)

    for one in tokens.access.values():
        one.revoked = True
    assert await access.call(ann, look) == ann.open_id
    tokens.revoke(ann.open_id)
    with pytest.raises(NotConnected) as over:
        await access.call(ann, look)
    assert over.value.ended == "refused"


async def test_who_asks_at_the_same_time_gets_what_one_refreshed(
    feishu: Feishu, store: UserTokenStore, access: PersonalAccess
) -> None:
    (ann,) = feishu.people(1)
    await connect(feishu, access, ann)
    await spend(store, ann)
    feishu.pause_s = 0.2
    found = await asyncio.gather(*(access.call(ann, given) for _ in range(8)))

    assert len({one.access_token for one in found}) == 1
    assert feishu.refreshed == 1


async def test_a_turn_that_is_stopped_does_not_lose_the_token(
    feishu: Feishu, store: UserTokenStore, access: PersonalAccess
) -> None:
    (ann,) = feishu.people(1)
    await connect(feishu, access, ann)
    await spend(store, ann)
    feishu.pause_s = 0.3
    turn = asyncio.create_task(access.call(ann, given))
    await asyncio.to_thread(feishu.issued.wait)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert (await access.call(ann, given)).open_id == ann.open_id
    assert feishu.refreshed == 1


@pytest.mark.parametrize(
    ("code", "ended"),
    [(20050, ""), (20074, ""), (20037, "expired"), (20064, "refused"), (20073, "refused")],
)
async def test_what_feishu_says_of_a_refresh_token_decides_whether_it_is_over(
    feishu: Feishu, store: UserTokenStore, access: PersonalAccess, code: int, ended: str
) -> None:
    (ann,) = feishu.people(1)
    await connect(feishu, access, ann)
    await spend(store, ann)
    path = "/open-apis/authen/v2/oauth/token"
    body = {"code": code, "error": "server_error"}
    feishu.platform.switchboard.add(PreparedFault(path, status=400, body=body, left=1))
    with pytest.raises(NotConnected if ended else Unreachable) as failed:
        await access.call(ann, given)

    assert getattr(failed.value, "ended", "") == ended
    if not ended:
        assert (await access.call(ann, given)).open_id == ann.open_id


async def test_a_token_never_comes_out_of_a_call_for_somebody_else(
    feishu: Feishu, store: UserTokenStore, access: PersonalAccess
) -> None:
    """Any order of calls, refreshing, new grants and ends, at the same time."""
    people, dice = feishu.people(5), random.Random(34)
    issued: dict[str, str] = {}

    async def step(person: FeishuPerson) -> None:
        roll = dice.random()
        if roll < 0.05:
            await store.disconnect(person)
        elif roll < 0.15:
            await connect(feishu, access, person)
        else:
            try:
                token = await access.call(person, given)
            except NotConnected:
                return
            known = feishu.platform.user_tokens.access[token.access_token]
            assert token.open_id == person.open_id == known.grant.open_id
            assert issued.setdefault(token.access_token, person.open_id) == person.open_id
            if roll < 0.5:
                await spend(store, person)

    for _ in range(CALLS // 10):
        await asyncio.gather(*(step(dice.choice(people)) for _ in range(10)))
    assert len(issued) > 10


def _counted(said: Counter[str]) -> dict[str, int]:
    """What the workers said, without its times."""
    return {word: n for word, n in said.items() if word.isidentifier() or "=" in word}


async def test_workers_that_race_and_are_killed_use_no_token_twice_and_lose_none_unsaid(
    feishu: Feishu, database_url: str, store: UserTokenStore, access: PersonalAccess,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    people, dice, lost = feishu.people(3), random.Random(7), 0
    feishu.pause_s = 0.04
    for person in people:
        await connect(feishu, access, person)

    def begin() -> subprocess.Popen[str]:
        arguments = [database_url, feishu.domain, KEY, str(STALE_S), *(p.open_id for p in people)]
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.support.token_user", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert worker.stdout
        assert worker.stdout.readline() == "begun\n"
        return worker

    workers = [begin() for _ in range(WORKERS)]
    said: Counter[str] = Counter()
    try:
        for _ in range(KILLS):
            await asyncio.sleep(dice.uniform(0.02, 0.3))
            victim = workers.pop(0)
            victim.kill()
            rest, _ = victim.communicate()
            said.update(rest.split())
            workers.append(await asyncio.to_thread(begin))
            for one in await store.to_tend(stale_s=STALE_S):
                if one.why == "ended":  # they are told, and connect again
                    lost += 1
                    await store.note_told(one.person)
                    await connect(feishu, access, one.person)
    finally:
        for worker in workers:
            worker.kill()
            rest, _ = worker.communicate()
            said.update(rest.split())
    await asyncio.sleep(STALE_S + 0.5)  # whoever refreshed when the last were killed is gone
    for person in people:
        found = await store.use(person, "last", stale_s=STALE_S)
        why = [one.why for one in await store.to_tend() if one.person == person]
        lost += found == NoToken("lost")
        assert (found == NoToken("lost")) == (why == ["ended"])
        assert isinstance(found, Access | RefreshTurn) or why
    with capsys.disabled():
        print(
            f"\n{KILLS} kills, {feishu.refreshed} refreshed, {lost} lost and said, {_counted(said)}"
        )

    assert feishu.refused == {}, "a refresh token was used twice, or one that nobody has"
    assert said["STRANGER"] == 0
    assert lost <= KILLS + WORKERS
    assert lost or KILLS < 20, "no kill came between a refresh and what was kept of it"
    assert feishu.refreshed > KILLS
