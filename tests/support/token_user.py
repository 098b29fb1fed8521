"""A process that acts as people and refreshes their tokens each time, until it is killed.

`python -m tests.support.token_user DATABASE_URL DOMAIN KEY STALE_S OPEN_ID…`
"""

from __future__ import annotations

import asyncio
import random
import sys

from bot.feishu.authorization import UserAuthorization
from bot.feishu.errors import FeishuFailure
from bot.people.personal_access import NotConnected, PersonalAccess, UserToken
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import StoreError
from memory.scope import FeishuPerson
from memory.sealing import Sealer
from memory.tables.user_tokens import Access, RefreshTurn, UserTokenStore
from sandbox.config import SandboxConfig

APP = SandboxConfig()


async def main(url: str, domain: str, key: str, stale_s: int, people: list[str]) -> None:
    """Says “STRANGER” and ends when a token speaks for somebody else."""
    pool = connection_pool(url)
    await pool.open()
    store = UserTokenStore(PostgresRpc(pool), Sealer.of(key))
    authorization = UserAuthorization(domain, APP.app_id, APP.app_secret)
    access = PersonalAccess(store, authorization, stale_s=stale_s)

    async def look(token: UserToken) -> str:
        return await authorization.who(token.access_token)

    print("begun", flush=True)
    while True:
        person = FeishuPerson(APP.tenant_key, random.choice(people))
        try:
            if await access.call(person, look) != person.open_id:
                print("STRANGER", flush=True)
                return
            found = await store.use(person, "looks")
            if isinstance(found, Access):
                await store.spend(person, found)
            elif isinstance(found, RefreshTurn) and found.refresh:
                await store.end_refresh(person, "looks", "")
        except (NotConnected, StoreError, FeishuFailure) as exc:
            print(type(exc).__name__, flush=True)
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    _, url, domain, key, stale_s, *people = sys.argv
    asyncio.run(main(url, domain, key, int(stale_s), people))
