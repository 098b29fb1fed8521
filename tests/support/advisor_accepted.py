"""Findings of the advisor and of pgrls that are as they should be, each kind with its reason.

A finding that no entry names, and an entry that names nothing, fail the tests.
"""

from __future__ import annotations

from collections.abc import Mapping

Accepted = tuple[str, int, str]
"""A pattern of the objects, how many there are, and why."""

_NOBODY = "no policy lets anybody in: the owner's functions and the service role use it"
_FOUND = "rows are found by an index on the most selective column; the rest only filters"

ADVISOR: Mapping[str, Accepted] = {
    "0001 unindexed foreign key": (r"agent_\w+: agent_\w+_fkey", 10, _FOUND),
    "0004 no primary key": (
        r"bot_private\.source_key|feishu_bot\.inbox",
        2,
        "source_key holds one row, inbox has a hash index on its key; both replicate whole rows",
    ),
    "0008 row level security without policy": (r"(bot_private|feishu_bot)\.\w+", 4, _NOBODY),
    "0011 function without a fixed search path": (
        r"bot_private\.\w+|public\.(claim|membership_lasts|token_auth_user|own_tenant|readable_chats"
        r"|person_mark)",
        50,
        "runs as its caller and names every object with its schema; with a fixed path Postgres "
        "could not inline it",
    ),
    "0027 table that authenticated sees in GraphQL": (
        r"public\.\w+",
        33,
        "row level security decides on each row; only the bot issues tokens, for five minutes",
    ),
}

_READERS = (
    r"(?:bot_private|feishu_bot|public)\.(\w+)\.\1_(?:console|verifier)"
    r"|feishu_bot\.console_audit\.console_audit_(?:select|insert)"
)
_OPERATORS = (
    "for the roles of the operators' console and of the verification of deletions alone, which "
    "read everything and change nothing"
)

PGRLS: Mapping[str, Accepted] = {
    "SEC002": (
        r"\w+\.\w+",
        56,
        "the owner's functions step over policies on purpose; no role of the API owns a table",
    ),
    "SEC005": (
        _READERS + r"|public\.agent_working_memory_history\.agent_working_memory_history_told",
        72,
        f"{_OPERATORS}; the last one only takes rows away",
    ),
    "SEC007": (r"\w+\.\w+", 36, "each policy names a place or a person, and none widens another"),
    "SEC008": (_READERS, 63, _OPERATORS),
    "SEC009": (r"(bot_private|feishu_bot)\.\w+", 4, _NOBODY),
    "SEC013": (
        r"public\.\w+\.\w+",
        17,
        "the trigger keeps derived rows in step with the row that changes, and returns nothing",
    ),
    "SEC014": (
        r"bot_private\.\w+",
        39,
        "outside the API's schema, behind functions that check the claims of the token; the search "
        "path is fixed",
    ),
    "SEC016": (r"service_role", 1, "Supabase's own role"),
    "SEC022": (
        r"\w+\.\w+",
        24,
        "only the owner's functions and the service role write it",
    ),
    "SEC027": (
        r"public\.agent_(feedback|note_uses)",
        2,
        "the policy names the person who acted (actor_id), or the owner's conversation",
    ),
    "SEC028": (
        r"feishu_bot\.console_audit\.console_audit_insert",
        1,
        "the console only adds to its log",
    ),
    "SEC038": (_READERS, 63, _OPERATORS),
    "PERF003": (r"public\.\w+\.\w+", 88, _FOUND),
    "PERF004": (r"public\.agent_note_uses\.\w+", 4, _FOUND),
    "VIEW002": (r"public\.agent_turn_texts", 1, "it has the rights of its caller"),
}
