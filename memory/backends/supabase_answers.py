"""Interprets what Supabase's API answers: a result, or the error that a refusal means. Pure.

PostgREST refuses with JSON that holds a code. A gateway can answer 200 with an empty or
shortened body; the function may have run then, so the outcome is unknown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

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

# These functions return nothing.
VOID_FUNCTIONS = frozenset(
    "close_user_ask describe_chat drop_answer drop_card drop_digests_of drop_message"
    " drop_tokens_of_leavers drop_told_document drop_turn end_refresh end_welcome enter_chat"
    " forget_sources hold_group leave_unanswered note_document_open note_done"
    " note_ending_told note_gone note_user_ask postpone_chat release_share require_person"
    " rewrite_memory save_chat_adder save_chat_managers spend_user_token stop_timers_for"
    " stop_timers_of_chat take_back_calls take_back_facts take_back_kept take_back_notes"
    " take_back_sources take_back_tellers take_back_timers take_card wait_for_answer"
    " withdraw_kept_cards withdraw_later withdraw_lists".split()
)

# These return null where there is nothing. Null from any other function is no result.
NULLABLE_FUNCTIONS = frozenset(
    "append_to_conversation begin_conversation begin_welcome cancel_timer card_asked"
    " card_to_redraw change_timer continue_conversation conversations_to_embed correct_item"
    " count_embeddings drop_withdrawal due_timer fail_import finish_conversation finish_import"
    " forget_item forget_summary get_digest get_import get_user_seal get_user_tokens import_by_id"
    " last_decision link_person load_conversation messages_to_embed next_import_thread note_card"
    " note_document note_reaction open_fold own_tenant p2p_chat pending_confirmation"
    " recall_message receipt_of remove_from_conversation resume_card said_elsewhere said_message"
    " save_chat_members set_chat_quiet set_import_state start_afresh store_import_page"
    " undo_kept".split()
)

# A turn depends on the fields of what these return.
_OBJECTS = frozenset(
    "begin_turn record_reply record_reply_with_buttons preface_reply mark_sent get_working_memory"
    " merge_working_memory memory_overview".split()
)
_LISTS = frozenset({"list_conversations", "list_messages", "running_turns", "recall"})

# These functions are stable in SQL: a second call changes nothing.
READ_FUNCTIONS = frozenset(
    "chat_is_quiet compared_terms conversations_to_embed count_embeddings count_imported"
    " count_people count_person count_user_tokens digest_material documents_behind"
    " documents_behind_sources due_timer export_person find_facts former_facts"
    " get_chat_rules get_digest get_import get_user_seal get_user_tokens get_working_memory"
    " has_answered_in import_by_id inspect_chat inspect_timers is_topic_group known_chats"
    " list_conversations list_decisions list_imports list_messages"
    " list_orphans list_people list_tables list_timers list_unplaced list_working_memory"
    " load_conversation manages_chat memory_overview messages_gone messages_to_embed"
    " note_registry p2p_chat pending_confirmation pending_replies people_named private_reply"
    " recall recent_activity running_turns said_message turns_checked user_tokens_to_tend".split()
)


@dataclass(frozen=True, slots=True)
class KeyVariables:
    """The variables that the `apikey` of a call and its token come from; no values."""

    key: str
    token: str


SERVICE_VARIABLES = KeyVariables("SUPABASE_SECRET_KEY", "SUPABASE_SECRET_KEY")


def person_variables(token: str) -> KeyVariables:
    """Of a person's call; `token` is the variable that its token is signed with."""
    return KeyVariables("SUPABASE_PUBLISHABLE_KEY", token)


def refusal_error(function: str, status: int, body: bytes, names: KeyVariables) -> StoreError:
    """The error for an answer of `status` (HTTP, not 2xx) to a call of `function`."""
    code, message = _code_and_message(body)
    if status == 401 and (problem := _key_problem(code, message, names)):
        return KeyRefused(f"{function}: {problem}", code=code or "401")
    if code in _NOT_MIGRATED:
        schema_hint = "; the schema public has to be exposed" if code == "PGRST106" else ""
        return not_migrated(f"{function}: {message}{schema_hint}", code=code)
    database_error = _database_error(code, f"{function}: {message}")
    if database_error and _is_refusal(database_error, status):
        return database_error
    sentence = f"{function}: Supabase answers {status}{_in_brackets(code)}"
    return StoreUnavailable(sentence, code=code or str(status))


def _database_error(code: str, message: str) -> StoreError | None:
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


def _code_and_message(body: bytes) -> tuple[str, str]:
    """Code and message of the answer, "" where there is none."""
    try:
        parsed_body = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(parsed_body, dict):
        return "", ""
    return str(parsed_body.get("code") or ""), str(parsed_body.get("message") or "")


def _key_problem(code: str, message: str, names: KeyVariables) -> str:
    """What is wrong with the key or the token, and where the right one is."""
    if code == "PGRST303":
        return f"Supabase takes our token for out of date ({message}): check this machine's clock"
    if code.startswith("PGRST3"):
        where = f"{names.token}{_where_to_find(names.token)}"
        return f"Supabase cannot verify our token ({code}): check {where}"
    if code == "42501":  # 401, not 403: the request counted as nobody's
        return f"{names.key} gives the rights of nobody: it is no secret key ({_KEYS})"
    return f"Supabase refuses the key (401): check {names.key} ({_KEYS})"


def _where_to_find(variable: str) -> str:
    return _WHERE.get(variable, f" ({_KEYS})")


def require_json(function: str, body: bytes) -> None:
    """Raises `StoreUnavailable` if the body of a response (b"": it has none) is not JSON."""
    if not body and function in VOID_FUNCTIONS:
        return
    try:
        json.loads(body)
    except ValueError as exc:
        raise _missing_result(function) from exc


def require_shape(function: str, result: Any) -> Any:
    """Returns the result. Raises `StoreUnavailable` if it is missing."""
    kind = dict if function in _OBJECTS else list if function in _LISTS else object
    may_be_none = function in VOID_FUNCTIONS or function in NULLABLE_FUNCTIONS
    is_missing = result is None and not may_be_none
    if is_missing or not isinstance(result, kind):
        raise _missing_result(function)
    return result


def _missing_result(function: str) -> StoreUnavailable:
    return StoreUnavailable(f"{function}: no result came, so the outcome is unknown")
