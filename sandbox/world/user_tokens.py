"""Tokens of the app, and people's own: the device grant, access and refresh tokens, revocation.

Sources: RFC 8628; open.feishu.cn, tenant_access_token_internal, get-user-access-token,
refresh-user-access-token, auth-v4/revoked; the answers of the device grant as larksuite/cli
reads them.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from sandbox.config import SandboxConfig
from sandbox.errors import ApiError, GrantRefused
from sandbox.world.user_scopes import OFFLINE, USER_SCOPES

DEVICE_LIFE_S = 600
INTERVAL_S = 1  # Feishu says 5
SLOWER_BY_S = 5
REFRESH_LIFE_S = 604_800
GRANT_LIFE_S = 365 * 86_400  # then people have to approve anew, however often it was refreshed
MOST_SCOPES = 50

WAITING, APPROVED, REFUSED, FETCHED = "waiting", "approved", "refused", "fetched"
BOTH = "user_access_token refresh_token"
REVOKED_KINDS = ("user_access_token", "refresh_token", BOTH)


@dataclass
class DeviceRequest:
    """A link that waits for somebody to approve. `open_id`: who decided."""

    device_code: str
    user_code: str
    scopes: tuple[str, ...]
    begun_at: float
    outcome: str = WAITING
    open_id: str = ""
    interval_s: float = INTERVAL_S
    polled_at: float = 0.0


@dataclass
class UserGrant:
    """What somebody approved, and since when; its tokens end with it."""

    open_id: str
    scopes: tuple[str, ...]
    since: float


@dataclass
class AccessToken:
    """A user_access_token."""

    grant: UserGrant
    scopes: tuple[str, ...]
    expires_at: float
    revoked: bool = False


@dataclass
class RefreshToken:
    """A refresh_token, which works once."""

    grant: UserGrant
    expires_at: float
    used: bool = False
    revoked: bool = False


@dataclass(frozen=True)
class UserIdentity:
    """Whom a token speaks for, and what it may do now."""

    open_id: str
    scopes: frozenset[str]


@dataclass(frozen=True)
class GrantAnswer:
    """What the token endpoint answers; `refresh_token` is "" without offline_access."""

    access_token: str
    expires_in: int
    refresh_token: str
    refresh_expires_in: int
    scopes: tuple[str, ...]


@dataclass
class UserTokens:
    """Not thread-safe; the world's lock guards it. `openable`: the scopes that an administrator has
    opened to the app for people's tokens; `refreshable`: the console's switch for refreshing."""

    config: SandboxConfig
    openable: set[str] = field(default_factory=lambda: set(USER_SCOPES))
    refreshable: bool = True
    requests: dict[str, DeviceRequest] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)

    def begin(self, scope: str) -> DeviceRequest:
        """A fresh link for these scopes. Raises GrantRefused for scopes that do not exist."""
        scopes = _scopes(scope)
        if any(one not in USER_SCOPES for one in scopes) or len(scopes) > MOST_SCOPES:
            raise GrantRefused("invalid_scope", 20043)
        code = f"{secrets.token_hex(2)}-{secrets.token_hex(2)}".upper()
        made = DeviceRequest(secrets.token_urlsafe(40), code, scopes, self._now())
        self.requests[made.device_code] = made
        return made

    def request(self, user_code: str) -> DeviceRequest | None:
        """The request that this code stands for, or None."""
        every = self.requests.values()
        return next((one for one in every if one.user_code == user_code), None)

    def is_over(self, request: DeviceRequest) -> bool:
        """Whether its link is too old."""
        return self._now() - request.begun_at > DEVICE_LIFE_S

    def missing(self, request: DeviceRequest) -> list[str]:
        """Scopes that were asked for and that the app does not have (20027)."""
        return [one for one in request.scopes if one not in self.openable]

    def poll(self, device_code: str) -> GrantAnswer:
        """The tokens, once. Raises GrantRefused while nobody approved, and for ever after."""
        made = self.requests.get(device_code)
        if made is None or made.outcome == FETCHED or self.is_over(made):
            raise GrantRefused("expired_token")
        if made.outcome == REFUSED:
            raise GrantRefused("access_denied")
        if made.outcome == WAITING:
            raise GrantRefused(self._pace(made))
        made.outcome = FETCHED
        grant = UserGrant(made.open_id, self._with_earlier(made), self._now())
        return self._issue(grant, grant.scopes)

    def refreshed(self, token: str, scope: str = "") -> GrantAnswer:
        """New tokens for a refresh token, which works once. Raises GrantRefused."""
        if not self.refreshable:
            raise GrantRefused("invalid_grant", 20074)
        known = self.refresh.get(token)
        if known is None:
            raise GrantRefused("invalid_grant", 20026)
        if known.used:
            raise GrantRefused("invalid_grant", 20073)
        if known.revoked:
            raise GrantRefused("invalid_grant", 20064)
        now = self._now()
        if known.expires_at <= now or known.grant.since + GRANT_LIFE_S <= now:
            raise GrantRefused("invalid_grant", 20037)
        narrowed = self._narrowed(known.grant, scope)
        known.used = True
        return self._issue(known.grant, narrowed)

    def identify(self, token: str) -> UserIdentity:
        """Whom the token speaks for. Raises ApiError for one that is unknown, revoked or over."""
        known = self.access.get(token)
        if known is None or known.revoked:
            raise ApiError(99991668)
        if known.expires_at <= self._now():
            raise ApiError(99991677, status=401)
        return UserIdentity(known.grant.open_id, frozenset(known.scopes) & self.openable)

    def revoke(self, open_id: str, kind: str = BOTH) -> bool:
        """Ends the tokens of that person; whether there were any."""
        kinds, ended = kind.split(), False
        tokens: list[AccessToken | RefreshToken] = []
        tokens += self.access.values() if "user_access_token" in kinds else ()
        tokens += self.refresh.values() if "refresh_token" in kinds else ()
        for one in tokens:
            if one.grant.open_id == open_id and not one.revoked:
                one.revoked = ended = True
        return ended

    def grants(self) -> list[UserGrant]:
        """What can still be used or refreshed, oldest first."""
        now = self._now()
        living = [
            *(one.grant for one in self.access.values() if _lives(one, now)),
            *(one.grant for one in self.refresh.values() if _lives(one, now) and not one.used),
        ]
        unique = {id(one): one for one in living}
        return sorted(unique.values(), key=lambda one: one.since)

    def _with_earlier(self, made: DeviceRequest) -> tuple[str, ...]:
        """What a person grants adds up: the newest token has all of it (obtain-oauth-code)."""
        mine = (one for one in self.grants() if one.open_id == made.open_id)
        earlier = [scope for one in mine for scope in one.scopes]
        return tuple(dict.fromkeys((*earlier, *made.scopes)))

    def _now(self) -> float:
        return self.config.clock()

    def _pace(self, made: DeviceRequest) -> str:
        """Who asks before the interval is over has to wait five seconds longer from then on."""
        now, before = self._now(), made.polled_at
        made.polled_at = now
        if before and now - before < made.interval_s:
            made.interval_s += SLOWER_BY_S
            return "slow_down"
        return "authorization_pending"

    def _narrowed(self, grant: UserGrant, scope: str) -> tuple[str, ...]:
        scopes = _scopes(scope)
        if any(one not in grant.scopes for one in scopes):
            raise GrantRefused("invalid_scope", 20068)
        return scopes or grant.scopes

    def _issue(self, grant: UserGrant, scopes: tuple[str, ...]) -> GrantAnswer:
        now = self._now()
        given = tuple(one for one in scopes if one in self.openable)
        access_life = self.config.token_life_s
        access, refresh = _token(), _token() if OFFLINE in given else ""
        self.access[access] = AccessToken(grant, given, now + access_life)
        if refresh:
            self.refresh[refresh] = RefreshToken(grant, now + REFRESH_LIFE_S)
        return GrantAnswer(access, access_life, refresh, REFRESH_LIFE_S, given)


def _lives(token: AccessToken | RefreshToken, now: float) -> bool:
    return not token.revoked and token.expires_at > now


def _token() -> str:
    """As long as Feishu's: 1 to 2 KB."""
    return f"eyJhbGciOiJFUzI1NiIs.{secrets.token_urlsafe(1100)}"


def _scopes(scope: str) -> tuple[str, ...]:
    """Raises GrantRefused for one that stands twice."""
    names: Iterable[str] = scope.split()
    scopes = tuple(names)
    if len(set(scopes)) < len(scopes):
        raise GrantRefused("invalid_scope", 20067)
    return scopes


RENEW_BELOW_S = 1800


class Tokens:
    """The app's tokens: two hours, the same one until less than 30 minutes remain. Not thread-safe;
    the platform's lock guards it."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._expiry: dict[str, float] = {}

    def issue(self, app_id: object, app_secret: object) -> tuple[str, int]:
        """A token and the seconds it has left. Raises ApiError for wrong credentials."""
        if app_id != self._config.app_id:
            raise ApiError(10003, "invalid param: app_id is unknown")
        if app_secret != self._config.app_secret:
            raise ApiError(10014)
        now = self._config.clock()
        for token, expiry in self._expiry.items():
            if expiry - now >= RENEW_BELOW_S:
                return token, int(expiry - now)
        token = "t-" + secrets.token_hex(20)
        self._expiry[token] = now + self._config.token_life_s
        return token, self._config.token_life_s

    def check(self, authorization: str) -> None:
        """Raises ApiError unless the header carries a token that still lives."""
        if not authorization.startswith("Bearer ") or len(authorization) < len("Bearer x"):
            raise ApiError(99991661)
        token = authorization.removeprefix("Bearer ").strip()
        if self._expiry.get(token, 0.0) <= self._config.clock():
            raise ApiError(99991663)
