"""Tenant access tokens: two hours, the same token until less than 30 minutes remain.

Source: open.feishu.cn, tenant_access_token_internal.
"""

import secrets

from sandbox.config import SandboxConfig
from sandbox.errors import ApiError

RENEW_BELOW_S = 1800


class Tokens:
    """Issues and checks tokens. Not thread-safe; the platform's lock guards it."""

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

    def revoke_all(self) -> None:
        """Every token issued so far is invalid from now on."""
        self._expiry.clear()
