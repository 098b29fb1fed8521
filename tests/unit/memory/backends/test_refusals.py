"""What the memory's refusals are called, by code, status and message."""

from __future__ import annotations

import json

from memory import errors
from memory.backends.supabase_answers import (
    SERVICE_VARIABLES,
    KeyVariables,
    person_variables,
    refusal_error,
)
from memory.errors import (
    AccessDenied,
    BadArgument,
    BadPatch,
    IdentityMissing,
    KeyRefused,
    NoteInvalid,
    NoteNotFound,
    NotMigrated,
    StoreError,
    StoreUnavailable,
    TextRefused,
    TurnUnknown,
    WorkingMemoryTooLarge,
    from_sqlstate,
)
from tests.support.rows import every_row


@every_row(
    ("code", "kind"),
    [
        ("PT400", BadArgument),
        ("PT403", AccessDenied),
        ("42501", AccessDenied),
        ("PT404", TurnUnknown),
        ("PT410", NoteNotFound),
        ("PT413", WorkingMemoryTooLarge),
        ("PT415", BadPatch),
        ("PT422", NoteInvalid),
        ("PT428", IdentityMissing),
        ("22021", TextRefused),
        ("22P02", TextRefused),
        ("22P05", TextRefused),
        ("42883", NotMigrated),
        ("42P01", NotMigrated),
        ("3F000", NotMigrated),
        ("42704", NotMigrated),
        ("08006", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("40P01", StoreUnavailable),
        ("58030", StoreUnavailable),
        ("XX000", StoreUnavailable),
        ("XX001", StoreUnavailable),
        ("23514", StoreError),
    ],
)
def test_a_sqlstate_has_one_name(code: str, kind: type[StoreError]) -> None:
    found = from_sqlstate(code, "open_turn: so it is")

    assert type(found) is kind
    assert found.code == code


@every_row("message", ['role "authenticated" does not exist', '角色"service_role" 不存在'])
def test_a_role_that_is_missing_is_a_missing_migration_in_every_language(message: str) -> None:
    found = from_sqlstate("22023", f"open_turn: {message}")

    assert isinstance(found, NotMigrated)
    assert str(found).endswith("run scripts/migrate")


def test_another_wrong_value_is_neither_a_migration_nor_a_patch() -> None:
    assert type(from_sqlstate("22023", "recall: time zone not recognized")) is StoreError


def test_every_error_of_the_memory_stands_in_the_tree_of_the_docstring() -> None:
    tree = errors.__doc__ or ""
    named = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]

    assert [name for name in named if name not in tree] == []


def _json(code: str, message: str) -> str:
    return json.dumps({"code": code, "message": message, "details": None, "hint": None})


AS_PERSON = person_variables("SUPABASE_JWT_SECRET")
WITH_KEY = person_variables("SUPABASE_JWT_PRIVATE_KEY")
GATEWAY = json.dumps({"message": "Invalid API key", "hint": "Double check your key"})


@every_row(
    ("status", "body", "credentials", "sentence"),
    [
        (401, GATEWAY, SERVICE_VARIABLES, "refuses the key (401): check SUPABASE_SECRET_KEY"),
        (401, GATEWAY, AS_PERSON, "refuses the key (401): check SUPABASE_PUBLISHABLE_KEY"),
        (401, "", SERVICE_VARIABLES, "refuses the key (401): check SUPABASE_SECRET_KEY"),
        (401, _json("PGRST301", "JWSError"), AS_PERSON, "(PGRST301): check SUPABASE_JWT_SECRET"),
        (401, _json("PGRST301", "JWSError"), WITH_KEY, "check SUPABASE_JWT_PRIVATE_KEY (Project"),
        (401, _json("PGRST301", "JWSError"), SERVICE_VARIABLES, "check SUPABASE_SECRET_KEY"),
        (401, _json("PGRST303", "JWT expired"), AS_PERSON, "JWT expired): check this machine's"),
        (401, _json("42501", "permission denied"), SERVICE_VARIABLES, "SUPABASE_SECRET_KEY gives"),
    ],
)  # fmt: skip
def test_a_key_that_is_refused_is_named_by_its_variable(
    status: int, body: str, credentials: KeyVariables, sentence: str
) -> None:
    found = refusal_error("open_turn", status, body.encode(), credentials)

    assert type(found) is KeyRefused
    assert sentence in str(found)


@every_row(
    ("status", "body"),
    [
        (404, _json("PGRST202", "Could not find the function public.begin_turn(p)")),
        (300, _json("PGRST203", "Could not choose the best candidate function")),
        (406, _json("PGRST106", "Invalid schema: public")),
        (404, _json("42883", "function public.f() does not exist")),
        (400, _json("22023", 'role "authenticated" does not exist')),
    ],
)
def test_an_api_without_our_functions_is_not_migrated(status: int, body: str) -> None:
    found = refusal_error("open_turn", status, body.encode(), AS_PERSON)

    assert type(found) is NotMigrated
    assert str(found).startswith("open_turn: ")
    assert str(found).endswith(": run scripts/migrate")


@every_row("status", [302, 402, 403, 404, 408, 429, 500, 502, 503, 504, 522, 540])
@every_row(
    "body",
    ["", "<html>", "[]", '"text"', '{"message": "no"}', '{"code": 500, "message": "no"}',
     '{"error": {"code": "unexpected_failure"}}', '{"code": "SUP", "message": "PostgresError"}'],
)  # fmt: skip
def test_what_no_postgrest_said_means_that_the_memory_is_away(status: int, body: str) -> None:
    found = refusal_error("open_turn", status, body.encode(), AS_PERSON)

    assert type(found) is StoreUnavailable
    assert str(found) == f"open_turn: Supabase answers {status}"
    assert found.code


@every_row(
    ("status", "body", "kind"),
    [
        (403, _json("PT403", "another's"), AccessDenied),
        (403, _json("42501", "row-level security"), AccessDenied),
        (404, _json("PT404", "no turn"), TurnUnknown),
        (500, _json("57014", "canceling statement"), StoreUnavailable),
        (503, _json("PGRST002", "no schema cache"), StoreUnavailable),
        (400, _json("PGRST102", "not parsed"), StoreError),
        (500, _json("XX000", "internal"), StoreUnavailable),
        (500, _json("PT403", "another's"), AccessDenied),
        (500, _json("22P02", "invalid input"), TextRefused),
        (500, _json("54001", "stack depth limit exceeded"), StoreUnavailable),
        (500, _json("2F005", "no return statement"), StoreUnavailable),
        (400, _json("54001", "stack depth limit exceeded"), StoreError),
    ],
)
def test_what_the_database_says_goes_by_its_code_whatever_the_status(
    status: int, body: str, kind: type[StoreError]
) -> None:
    assert type(refusal_error("f", status, body.encode(), AS_PERSON)) is kind


@every_row(
    ("status", "code", "said"),
    [
        (500, "57014", "500 (57014: stopped by the server)"),
        (503, "53300", "503 (53300: out of resources)"),
        (500, "58030", "500 (58030: system error)"),
        (500, "XX000", "500 (XX000: internal error)"),
        (500, "2F005", "500 (2F005)"),
        (503, "PGRST002", "503 (PGRST002)"),
        (429, "57014", "429 (57014: stopped by the server)"),
    ],
)
def test_trouble_of_the_database_is_named_by_its_code_without_the_servers_words(
    status: int, code: str, said: str
) -> None:
    found = refusal_error(
        "open_turn", status, _json(code, "row of Alice: hers").encode(), AS_PERSON
    )

    assert type(found) is StoreUnavailable
    assert (str(found), found.code) == (f"open_turn: Supabase answers {said}", code)
