"""What Supabase's API says when it gives no result, for whoever calls it. Pure.

PostgREST refuses with JSON that holds a code, a SQLSTATE or one of its own (PostgREST, “Errors”).
An answer without such a code is not the memory's: a gateway, a limit or a page in between gave it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from memory.errors import (
    KeyRefused,
    StoreError,
    StoreUnavailable,
    from_sqlstate,
    not_migrated,
    trouble_of,
)

_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_CODE = re.compile(r"[0-9A-Z]{5}|PGRST[0-9A-Z]{3}")
# No such function, two of that name, no such column or table, schema not exposed.
_NOT_MIGRATED = frozenset({"PGRST202", "PGRST203", "PGRST204", "PGRST205", "PGRST106"})
_KEYS = "Project Settings, API keys"
_WHERE = {
    "SUPABASE_JWT_SECRET": " (Project Settings, JWT keys: the legacy secret)",
    "SUPABASE_JWT_PRIVATE_KEY": " (Project Settings, JWT keys: whether this key is imported there)",
}


@dataclass(frozen=True, slots=True)
class Named:
    """The variables that the `apikey` of a call and its token come from; no values."""

    key: str
    token: str


AS_SERVICE = Named("SUPABASE_SECRET_KEY", "SUPABASE_SECRET_KEY")


def as_person(token: str) -> Named:
    """Of a person's call; `token` is the variable that its token is signed with."""
    return Named("SUPABASE_PUBLISHABLE_KEY", token)


def refusal(function: str, status: int, body: bytes, names: Named) -> StoreError:
    """The error for an answer of `status` (HTTP, not 2xx) to a call of `function`."""
    code, message = _told(body)
    if status == 401 and (problem := _key_problem(code, message, names)):
        return KeyRefused(f"{function}: {problem}", code=code or "401")
    if code in _NOT_MIGRATED:
        schema_hint = "; the schema public has to be exposed" if code == "PGRST106" else ""
        return not_migrated(f"{function}: {message}{schema_hint}", code=code)
    database_error = _of_database(code, f"{function}: {message}")
    if database_error and _is_refusal(database_error, status):
        return database_error
    sentence = f"{function}: Supabase answers {status}{_in_brackets(code)}"
    return StoreUnavailable(sentence, code=code or str(status))


def _of_database(code: str, message: str) -> StoreError | None:
    """The error for what Postgres or PostgREST itself refused; None: it was neither."""
    if _SQLSTATE.fullmatch(code):
        return from_sqlstate(code, message)
    return StoreError(message, code=code) if code.startswith(("PGRST1", "PGRST2")) else None


def _is_refusal(error: StoreError, status: int) -> bool:
    """Whether the same call would be refused again. A refusal with a name would, whatever the
    status; another one with 5xx may pass."""
    kind = type(error)
    return kind is not StoreUnavailable and (kind is not StoreError or status < 500)


def _in_brackets(code: str) -> str:
    """The code with what it means. The server's sentence stays out: it may quote people."""
    if not _CODE.fullmatch(code):
        return ""
    return f" ({code}: {trouble})" if (trouble := trouble_of(code)) else f" ({code})"


def _told(body: bytes) -> tuple[str, str]:
    """Code and message of the answer, "" where there is none."""
    try:
        parsed_body = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(parsed_body, dict):
        return "", ""
    return str(parsed_body.get("code") or ""), str(parsed_body.get("message") or "")


def _key_problem(code: str, message: str, names: Named) -> str:
    """What is wrong with the key or the token, and where the right one is."""
    if code == "PGRST303":
        return f"Supabase takes our token for out of date ({message}): check this machine's clock"
    if code.startswith("PGRST3"):
        return (
            f"Supabase cannot verify our token ({code}): check {names.token}{_where(names.token)}"
        )
    if code == "42501":  # 401, not 403: the request counted as nobody's
        return f"{names.key} gives the rights of nobody: it is no secret key ({_KEYS})"
    return f"Supabase refuses the key (401): check {names.key} ({_KEYS})"


def _where(variable: str) -> str:
    return _WHERE.get(variable, f" ({_KEYS})")
