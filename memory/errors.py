"""What can go wrong with the memory.

StoreError
├── StoreUnavailable        the database or its API did not answer in time; try again later
├── AccessDenied            the token may not do this (row-level security said no)
├── IdentityMissing         no subject, sender or conversation was given; nothing was read
├── WorkingMemoryTooLarge   the patch would exceed the size limit; remove keys first
├── BadPatch                the patch is not a JSON object, or holds text Postgres cannot keep
└── TurnUnknown             the turn was never opened, or was forgotten

AuthUsersError
├── AuthUnavailable         Supabase Auth did not answer, or has trouble; try again later
├── AuthRefused             Supabase Auth refuses such requests; trying again changes nothing
└── NotTheSamePerson        a user of that id or address is somebody else; nothing was changed

ServerRefused               the embedded Postgres cannot run safely here; nothing was started
"""

from __future__ import annotations


class StoreError(Exception):
    """The memory refused an operation. `code` is the SQLSTATE where there is one."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class StoreUnavailable(StoreError):
    """The memory did not answer."""


class AccessDenied(StoreError):
    """The token may not do this."""


class IdentityMissing(StoreError):
    """No identity was given."""


class WorkingMemoryTooLarge(StoreError):
    """The working memory would exceed its size limit."""


class BadPatch(StoreError):
    """The patch is not a JSON object."""


class TurnUnknown(StoreError):
    """The turn was never opened."""


class AuthUsersError(Exception):
    """Supabase Auth did not do what was asked."""


class AuthUnavailable(AuthUsersError):
    """Supabase Auth did not answer."""


class AuthRefused(AuthUsersError):
    """Supabase Auth refuses such requests."""


class NotTheSamePerson(AuthUsersError):
    """A user of that id or address is somebody else."""


class ServerRefused(Exception):
    """The embedded Postgres cannot run safely here; the message is one sentence for operators."""


_BY_SQLSTATE: dict[str, type[StoreError]] = {
    "42501": AccessDenied,
    "22004": IdentityMissing,
    "PT413": WorkingMemoryTooLarge,
    "22023": BadPatch,
    "22P02": BadPatch,
    "22P05": BadPatch,
    "PT404": TurnUnknown,
}
# Connection lost, server shutting down, too many connections, statement cancelled.
_UNAVAILABLE = ("08", "57", "53", "40")


def from_sqlstate(code: str, message: str) -> StoreError:
    """The error for a SQLSTATE (five characters; PostgreSQL appendix A, PostgREST for `PTxyz`)."""
    if code in _BY_SQLSTATE:
        return _BY_SQLSTATE[code](message, code=code)
    if code[:2] in _UNAVAILABLE:
        return StoreUnavailable(message, code=code)
    return StoreError(message, code=code)
