"""Links everybody in `people` to their user of Supabase Auth, in the background or for an operator.

The table holds the work to be done, so nothing is lost when Auth is away or a worker dies. Any
number of workers may do it at once: they arrive at the same users and the same links.

Source of the admin API: supabase/auth, `internal/api/admin.go`: `POST /admin/users` takes an `id`,
answers 422 `email_exists` when the address is taken and 500 when only the id is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import httpx
import structlog
from pydantic import ValidationError
from supabase_auth import AsyncGoTrueAdminAPI
from supabase_auth.errors import AuthError
from supabase_auth.types import AdminUserAttributes, User

from memory.errors import AuthRefused, AuthUnavailable, AuthUsersError, NotTheSamePerson, StoreError
from memory.proxies import proxy_for
from memory.scope import FeishuPerson
from memory.tables.directory import PeopleStore, StoredPerson

log = structlog.get_logger()

_PAGE = 100
_LOOK_EVERY_S = 600.0
_RETRY_FIRST_S = 15.0
_EXISTS = ("email_exists", "user_already_exists")
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class LinkResult:
    """People linked now, and those who were not because of what the message says."""

    people: int
    refused: tuple[tuple[FeishuPerson, str], ...] = ()


class AccountLinker:
    """Links people to their Auth users, one round at a time in a process."""

    def __init__(
        self,
        people: PeopleStore,
        users: AuthUsers,
        *,
        look_every_s: float = _LOOK_EVERY_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._people = people
        self._users = users
        self._look_every_s = look_every_s
        self._retry_first_s = retry_first_s
        self._round = asyncio.Lock()
        self._new_people = asyncio.Event()
        self._refused: dict[FeishuPerson, str] = {}

    def wake(self) -> None:
        """There are new people: `run` looks now."""
        self._new_people.set()

    async def link_everybody(
        self, *, again: bool = False, on_person: Callable[[], None] = lambda: None
    ) -> LinkResult:
        """One round over who is not linked, or with `again` over everybody.

        Raises `AuthUnavailable`, `AuthRefused` and `StoreError`; who was linked until then stays.
        """
        linked_count, after = 0, None
        async with self._round:
            if again:
                self._refused.clear()
            while page := await self._people.listed(
                only_unlinked=not again, after=after, limit=_PAGE
            ):
                for person in page:
                    linked_count += await self._link(person)
                    on_person()
                after = page[-1].person
        return LinkResult(linked_count, tuple(sorted(self._refused.items())))

    async def run(self) -> None:
        """Links until cancelled; what goes wrong is logged and tried again later."""
        retry_s = self._retry_first_s
        while True:
            self._new_people.clear()
            try:
                await self.link_everybody()
            except (AuthUnavailable, AuthRefused, StoreError) as exc:
                level = log.error if isinstance(exc, AuthRefused) else log.warning
                level("people.linking_postponed", error=str(exc), retry_in_s=retry_s)
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, self._look_every_s)
                continue
            except Exception:
                log.exception("people.linking_interrupted")
            retry_s = self._retry_first_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_every_s):
                    await self._new_people.wait()

    async def _link(self, stored_person: StoredPerson) -> bool:
        """Whether the person is linked now; a person refused once is left alone until restart."""
        person = stored_person.person
        if person in self._refused:
            return False
        try:
            user = await self._users.ensure(person)
        except NotTheSamePerson as exc:
            return self._refuse(person, str(exc))
        is_linked = await self._people.link(person, user)
        if is_linked not in (user, None):
            return self._refuse(person, f"they are linked to another Auth user, {is_linked}")
        return is_linked is not None

    def _refuse(self, person: FeishuPerson, reason: str) -> bool:
        self._refused[person] = reason
        log.error("people.not_linked", **_ids(person), reason=reason)
        return False


def _ids(person: FeishuPerson) -> dict[str, str]:
    return {"tenant_key": person.tenant_key, "open_id": person.open_id}


class _EmailTaken(AuthUsersError):
    """A user of that address exists."""


class _NoSuchUser(AuthUsersError):
    """There is no user of that id."""


class AuthUsers:
    """Makes, finds and deletes the Auth user of a person. Methods raise `AuthUsersError`."""

    def __init__(self, url: str, secret_key: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._http = httpx.AsyncClient(timeout=timeout_s, trust_env=False, proxy=proxy_for(url))
        # A legacy service key is a JWT; an opaque secret key is not and goes into apikey only.
        bearer = {"Authorization": f"Bearer {secret_key}"} if secret_key.startswith("eyJ") else {}
        self._api = AsyncGoTrueAdminAPI(
            url=f"{url.rstrip('/')}/auth/v1",
            headers={"apikey": secret_key, **bearer},
            http_client=self._http,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ensure(self, person: FeishuPerson) -> UUID:
        """The id of the person's user, made now if there is none. Repeats well, also at once."""
        try:
            user = await self._create(person)
        except _EmailTaken as exc:
            if await self.find(person):
                return person.auth_user_id
            raise NotTheSamePerson(
                f"the address {person.placeholder_email} belongs to another Auth user: look at it "
                "in the dashboard (Authentication, Users), delete it if it should not be there"
            ) from exc
        except AuthUnavailable:
            # A taken id, also by another worker in this moment, looks like trouble of the server.
            if await self.find(person):
                return person.auth_user_id
            raise
        await self._require_wanted_id(person, user)
        return person.auth_user_id

    async def find(self, person: FeishuPerson) -> bool:
        """Whether the person's user exists. Raises `NotTheSamePerson` for somebody else's."""
        try:
            with _translated_errors():
                user = (await self._api.get_user_by_id(str(person.auth_user_id))).user
        except _NoSuchUser:
            return False
        expected_metadata = person.app_metadata
        if {key: user.app_metadata.get(key) for key in expected_metadata} != expected_metadata:
            raise NotTheSamePerson(
                f"the Auth user {person.auth_user_id} was not made for this Feishu person: look at "
                "its app_metadata in the dashboard (Authentication, Users)"
            )
        return True

    async def delete(self, person: FeishuPerson) -> bool:
        """Deletes the person's user, for every app; False when there is none."""
        if not await self.find(person):
            return False
        await self._delete(str(person.auth_user_id))
        return True

    async def _create(self, person: FeishuPerson) -> User:
        attributes: AdminUserAttributes = {
            "id": str(person.auth_user_id),
            "email": person.placeholder_email,
            # Unconfirmed, the address could be claimed by whoever signs up with it.
            "email_confirm": True,
            "app_metadata": person.app_metadata,
        }
        with _translated_errors():
            return (await self._api.create_user(attributes)).user

    async def _require_wanted_id(self, person: FeishuPerson, user: User) -> None:
        if user.id == str(person.auth_user_id):
            return
        await self._delete(user.id)
        raise AuthRefused(
            "this Supabase Auth gives users ids of its own and ignores ours: update it "
            "(self-hosted: image supabase/gotrue)"
        )

    async def _delete(self, auth_user_id: str) -> None:
        try:
            with _translated_errors():
                await self._api.delete_user(auth_user_id)
        except _NoSuchUser:
            return


@contextmanager
def _translated_errors() -> Iterator[None]:
    """The client's errors as ours; codes and status only, nothing of people."""
    try:
        yield
    except AuthError as exc:
        raise _error(_status(exc), str(exc.code or "")) from exc
    except (httpx.HTTPError, ValidationError) as exc:
        raise AuthUnavailable(
            f"Supabase Auth did not answer as it should: {type(exc).__name__}"
        ) from exc


def _status(exc: AuthError) -> int:
    """The HTTP status; 0: there was no answer."""
    if isinstance(exc.__cause__, httpx.HTTPStatusError):
        return exc.__cause__.response.status_code
    return 0


def _error(status: int, code: str) -> AuthUsersError:
    message = f"Supabase Auth answered {status} {code}".rstrip()
    if status == 422 and code in _EXISTS:
        return _EmailTaken(message)
    if status == 404 and code == "user_not_found":
        return _NoSuchUser(message)
    if status in (0, 408, 429) or status >= 500:
        return AuthUnavailable(message if status else "Supabase Auth did not answer")
    return AuthRefused(
        f"{message}: check SUPABASE_URL and SUPABASE_SECRET_KEY (Project Settings, API keys)"
    )
