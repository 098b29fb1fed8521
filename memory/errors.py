"""What can go wrong with the memory.

StoreError
├── StoreUnavailable        the database or its API did not answer in time; try again later
│   ├── StoreConnectionLost the connection ended during the call; a new one may work at once
│   ├── NotMigrated         it lacks our schema, roles or functions: run scripts/migrate
│   └── KeyRefused          Supabase refuses our key or token; the message names the variable
├── StoreQueueAway          the queue's database, where turns wait for a memory that is away
├── AccessDenied            this memory is another person's, or the token may not do this
├── IdentityMissing         no subject, sender or conversation was given; nothing was read
├── TurnUnknown             the turn was never opened, or was forgotten
├── BadArgument             a caller's mistake: a scope, table or number that there is not
├── BadPatch                the patch is not a JSON object that Postgres can keep
├── TextRefused             another text that Postgres cannot keep: NUL, half of a character
├── WorkingMemoryTooLarge   the patch would exceed the size limit; remove keys first
├── NoteNotFound            no note with this id is visible to this person in this chat
├── NoteInvalid             title, body or tags cannot be stored; the message says what to change
├── TakenBack               the question was taken back meanwhile: nothing is made from it any more
└── ProbeFailed             the isolation probe of scripts/check_memory could not be made

AuthUsersError
├── AuthUnavailable         Supabase Auth did not answer, or has trouble; try again later
├── AuthRefused             Supabase Auth refuses such requests; trying again changes nothing
└── NotTheSamePerson        a user of that id or address is somebody else; nothing was changed

ServerRefused               the embedded Postgres cannot run safely here; nothing was started

To people everything below `StoreUnavailable` is one thing: the memory is away; they are answered
without it and what is said is kept. The names are for operators.

The functions in `sql/` refuse with codes of the class PT, which nothing but they uses. PostgREST
passes them on as they are and takes the digits for the HTTP status (PostgREST, “Errors”); Supabase
Lite knows no other class of one's own.
"""

from __future__ import annotations


class StoreError(Exception):
    """The memory refused an operation. `code` is the SQLSTATE or PostgREST's, if there is one."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class StoreUnavailable(StoreError):
    """The memory did not answer."""


class StoreConnectionLost(StoreUnavailable):
    """The connection ended during a call, which may have been carried out."""


class NotMigrated(StoreUnavailable):
    """The database lacks what `scripts/migrate` makes."""


class KeyRefused(StoreUnavailable):
    """Supabase does not take our key or token."""


class StoreQueueAway(StoreError):
    """The queue's database did not take, or tell, what waits for a memory that is away."""


class AccessDenied(StoreError):
    """The token may not do this."""


class IdentityMissing(StoreError):
    """No identity was given."""


class TurnUnknown(StoreError):
    """The turn was never opened."""


class BadArgument(StoreError):
    """A caller's mistake."""


class BadPatch(StoreError):
    """The patch is not a JSON object."""


class TextRefused(StoreError):
    """Postgres cannot keep the text."""


class WorkingMemoryTooLarge(StoreError):
    """The working memory would exceed its size limit."""


class NoteNotFound(StoreError):
    """No note with this id is visible to this person in this chat."""


class NoteInvalid(StoreError):
    """The title, body or tags of a note cannot be stored."""


class TakenBack(StoreError):
    """The question was taken back; nothing was changed."""


class ProbeFailed(StoreError):
    """The isolation probe could not be made; nothing is known."""


class AuthUsersError(Exception):
    """Supabase Auth did not do what was asked."""


class AuthUnavailable(AuthUsersError):
    """Supabase Auth did not answer."""


class AuthRefused(AuthUsersError):
    """Supabase Auth refuses such requests."""


class NotTheSamePerson(AuthUsersError):
    """A user of that id or address is somebody else."""


class ServerRefused(Exception):
    """The embedded Postgres cannot run safely here; the message is one sentence for operators, `zh`
    the same in Chinese."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.zh = zh


_OURS: dict[str, type[StoreError]] = {
    "PT400": BadArgument,
    "PT403": AccessDenied,
    "PT404": TurnUnknown,
    "PT409": TakenBack,
    "PT410": NoteNotFound,
    "PT413": WorkingMemoryTooLarge,
    "PT415": BadPatch,
    "PT422": NoteInvalid,
    "PT428": IdentityMissing,
}
_POSTGRES: dict[str, type[StoreError]] = {
    "42501": AccessDenied,  # row-level security, or a privilege that is not there
    "22021": TextRefused,
    "22P02": TextRefused,
    "22P05": TextRefused,
}
# Schema, table, column, function, role or type: not there, or a function there twice.
_NOT_MIGRATED = frozenset({"3F000", "42P01", "42703", "42883", "42704", "42725"})
_TROUBLE = {
    "08": "connection lost",
    "25006": "the server takes no writes",
    "40": "transaction rolled back",
    "53": "out of resources",
    "57": "stopped by the server",
    "58": "system error",
    "XX": "internal error",
}
"""Classes of SQLSTATE, and one code, that say nothing about the statement: the same one may work
later."""
_OUR_ROLES = ('"authenticated"', '"service_role"')


def from_sqlstate(code: str, message: str) -> StoreError:
    """The error for a SQLSTATE (five characters; PostgreSQL, appendix A).

    `message` is the server's, with the name of the function before it.
    """
    if code in _NOT_MIGRATED or _lacks_a_role(code, message):
        return not_migrated(message, code=code)
    kind = _OURS.get(code) or _POSTGRES.get(code)
    if kind:
        return kind(message, code=code)
    return (StoreUnavailable if trouble_of(code) else StoreError)(message, code=code)


def trouble_of(code: str) -> str:
    """What kind of trouble of the server a SQLSTATE is; "" where it is about the statement."""
    return _TROUBLE.get(code) or _TROUBLE.get(code[:2], "")


def not_migrated(message: str, *, code: str = "") -> NotMigrated:
    """`message` says what the database lacks."""
    return NotMigrated(f"{message.splitlines()[0]}: run scripts/migrate", code=code)


def _lacks_a_role(code: str, message: str) -> bool:
    """Taking on a role that is not there is an invalid value of a setting, in words of the server's
    language."""
    return code == "22023" and any(role in message for role in _OUR_ROLES)
