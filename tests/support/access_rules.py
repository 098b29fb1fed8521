"""Who may do what with each table, view, sequence and function. An object without a line here fails
the build.

To add a table, append a `Table`: how a row of it is made, and the rules of `tests.support.access`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg.types.json import Jsonb

from tests.support.access import (
    ABOUT,
    BESIDE,
    COMMENTED,
    EVERYBODY,
    LASTING,
    LASTING_ABOUT,
    MEMBERS,
    ONCE_MEMBERS,
    OWN,
    PRIVATELY,
    SAID_AT,
    SHARED,
    UNAUTHORED,
    Row,
    Rules,
    authored,
    both,
    either,
    here,
    involved,
    is_home,
    nobody,
    of_either,
    of_turn,
    own_words,
    reached,
    speaks_for_self,
    stored,
)
from tests.support.actors import ALICE, BOB, HERE, PRIVATE, TENANT, Actor

Columns = dict[str, object]
NOW = datetime.now(UTC)
TAKEN = datetime(2027, 1, 1, tzinfo=UTC)
_THREE = (OWN, ABOUT, PRIVATELY)
_COMMENTED_TOO = (*_THREE, COMMENTED)


@dataclass(frozen=True, slots=True)
class Table:
    """`make` gives the columns of a row, in which `key`, an SQL expression, is what `named` says:
    the second argument of `make`, where it has a say.

    `may_change`: the columns a token may update. The test changes `tried` to `changed`.
    """

    make: Callable[[Row, str], Columns]
    rules: Rules
    key: str
    rows: tuple[Row, ...] = _THREE
    may_change: tuple[str, ...] = ()
    tried: str = "updated_at"
    changed: object = SAID_AT
    named: Callable[[Row], str] = lambda r: r.name
    unread: tuple[str, ...] = ()  # columns that no token reads


def _place(r: Row, key: str) -> Columns:
    return {"conversation_id": _thread(r, key), "tenant_key": TENANT, "chat_id": r.chat}


def _thread(r: Row, key: str) -> str:
    if r is COMMENTED:
        return f"feishu:{r.chat}"
    return f"feishu:{r.chat}:{key}"


def _said(r: Row, key: str) -> Columns:
    return {**_place(r, key), "user_id": r.subject, "actor_id": r.author}


def _in_chat(r: Row) -> Columns:
    return {"tenant_key": TENANT, "chat_id": r.chat}


def _number(key: str) -> int:
    """Another one for every key."""
    return int.from_bytes(key.encode()[:7], "big") + len(key)


def _subject(a: Actor, r: Row) -> bool:
    return a.claim("sub") == r.subject


def _summarised(a: Actor, r: Row) -> bool:
    """A place has one summary, of everybody; where people are kept apart each has their own."""
    return r.subject == (a.claim("sub") if a.claim("sharing") == "person" else "")


def _same_kind(a: Actor, r: Row) -> bool:
    alone = a.claim("chat_type") != "p2p" or speaks_for_self(a)
    return a.claim("chat_type") == r.kind and alone


def _subject_or_sender(a: Actor, r: Row) -> bool:
    return r.subject in (a.claim("sub"), a.claim("actor"))


def _unless_narrowed(rule: Callable[[Actor, Row], bool]) -> Callable[[Actor, Row], bool]:
    return lambda a, r: a.claim("sharing") != "person" or rule(a, r)


def _self_subject(a: Actor, r: Row) -> bool:
    return speaks_for_self(a) and a.claim("sub") == r.subject


def _sender_is_author(a: Actor, r: Row) -> bool:
    return a.claim("actor") == r.author is not None


def _for_oneself_if_lasting(a: Actor, r: Row) -> bool:
    return r.scope == "chat" or r.subject == r.author


def _shared_here(a: Actor, r: Row) -> bool:
    return a.claim("tenant_key") == TENANT and r.shared == a.claim("chat_id") is not None


def _named(a: Actor, r: Row) -> bool:
    """Whose turn it is, as subject or as sender, wherever."""
    mine = r.author in (a.claim("sub"), a.claim("actor"))
    return a.claim("tenant_key") == TENANT and a.claim("actor") is not None and mine


def _reader(a: Actor, r: Row) -> bool:
    return a.claim("tenant_key") == TENANT and a.claim("actor") == r.author is not None


def _member_themselves(a: Actor, r: Row) -> bool:
    return speaks_for_self(a) and authored(a, r)


def _member_of_their_own_tenant(a: Actor, r: Row) -> bool:
    return speaks_for_self(a) and a.claim("actor") == r.author is not None and is_home(a)


def _of_the_tenant(a: Actor, r: Row) -> bool:
    return a.claim("tenant_key") == TENANT


def _imported(a: Actor, r: Row) -> bool:
    """In p2p its own, and of a group what was said since the person is known to have joined."""
    if a.claim("sharing") == "person" or a.claim("chat_type") != "p2p":
        return False
    joined = MEMBERS.get(a.claim("actor") or "")
    return here(a, r) if r.chat == PRIVATE else bool(joined) and reached(a, r)


def _bob_added_the_bot(a: Actor, r: Row) -> bool:
    return a.claim("actor") == BOB and r.chat == HERE


def _in_the_group(a: Actor, r: Row) -> bool:
    """Whoever is in a group now reads its name in p2p, whenever they joined."""
    alone = _alone(a, r) and speaks_for_self(a) and a.claim("tenant_key") == TENANT and is_home(a)
    return alone and r.chat == HERE and a.claim("actor") in MEMBERS


def _at_their_own_place(a: Actor, r: Row) -> bool:
    """The token that is made for acting as a person: no chat's token says this place."""
    own = speaks_for_self(a) and a.claim("actor") == a.claim("chat_id") == r.author
    home = a.claim("tenant_key") == TENANT and a.claim("actor_tenant") is None
    return own and home and a.claim("chat_type") == "p2p"


def _shown_beside(a: Actor, r: Row) -> bool:
    """A card of their p2p chat that stands beside a group."""
    return r.name == BESIDE.name and _member_themselves(a, r)


def _alone(a: Actor, r: Row) -> bool:
    return a.claim("chat_type") == "p2p"


def _same_chat(a: Actor, r: Row) -> bool:
    """Ids only, and Feishu's chat ids are unique across tenants."""
    return a.claim("chat_id") == r.chat


def _sharing_stays_possible(a: Actor, r: Row) -> bool:
    """Shared with the place the token is of, or readable from it."""
    return r.shared is None or a.claim("chat_id") == r.shared or reached(a, Row("", chat=r.shared))


_READ_ONLY = {"insert": nobody, "update": nobody, "delete": nobody}
_STORED_IN_PLACE = Rules(stored, of_either, of_either, of_either)
_UNAUTHORED_TOO = (*_THREE, UNAUTHORED)

TABLES: Mapping[str, Table] = {
    "agent_chats": Table(
        lambda r, k: {
            "id": _thread(r, k), "root_id": k, "user_id": r.subject, **_in_chat(r),
            "chat_type": r.kind, "created_at": SAID_AT,
        },
        Rules(
            select=both(reached, _unless_narrowed(_subject_or_sender)),
            insert=both(here, _same_kind, _subject_or_sender),
            update=both(here, _subject_or_sender),
            delete=both(here, _self_subject),
        ),
        key="root_id",
        rows=_COMMENTED_TOO,
        may_change=("updated_at", "title", "chat_type", "history_from"),
        unread=("title",),
    ),
    "agent_turns": Table(
        lambda r, k: {"id": k, **_said(r, k), "created_at": SAID_AT},
        Rules(stored, of_turn, of_turn, both(here, own_words)),
        key="id",
        rows=_COMMENTED_TOO,
        may_change=(
            "updated_at", "state", "attempts", "error", "forgets", "drawn_on", "read_messages",
            "shown", "done", "given", "given_messages", "kept_cards", "intended",
        ),
    ),
    "agent_messages": Table(
        lambda r, k: {
            **_said(r, k), "turn_id": k, "role": "user", "content": k, "status": "received",
            "created_at": SAID_AT,
        },
        Rules(stored, of_turn, of_either, both(here, own_words)),
        key="turn_id",
        rows=(*_UNAUTHORED_TOO, COMMENTED),
        may_change=(
            "updated_at", "content", "message_id", "status", "error", "tool_calls", "file",
        ),
    ),
    "agent_embeddings": Table(
        lambda r, k: {
            "id": _number(k), **_said(r, k), "turn_id": k, "model": "m", "embedding": "[1,0]",
            "said_at": SAID_AT,
        },
        _STORED_IN_PLACE,
        tried="model",
        key="turn_id",
        rows=_UNAUTHORED_TOO,
        may_change=("model", "embedding"),
        changed="changed",
    ),
    "agent_working_memory": Table(
        lambda r, k: {
            **_said(r, k), "scope": r.scope, "content": Jsonb({"k": k}), "created_at": SAID_AT,
            **({"conversation_id": ""} if r.scope == "user" else {}),
        },
        Rules(
            select=stored,
            insert=both(of_turn, _for_oneself_if_lasting),
            # the author corrects, the subject has it deleted, from wherever they may read it
            update=either(of_turn, both(own_words, reached)),
            delete=both(own_words, reached),
        ),
        key="content ->> 'k'",
        rows=(*_UNAUTHORED_TOO, LASTING, LASTING_ABOUT, COMMENTED),
        may_change=("updated_at", "content", "sources"),
    ),
    "agent_working_memory_history": Table(
        lambda r, k: {
            **_said(r, k), "scope": "chat", "working_memory_id": _number(k), "at": SAID_AT,
            "was": Jsonb({"k": k}), "became": Jsonb({}),
        },
        Rules(
            select=both(involved, reached),
            insert=both(
                _sender_is_author, lambda a, r: a.claim("sub") in (r.subject, r.author), reached
            ),
            update=nobody,
            delete=both(involved, reached),
        ),
        tried="at",
        changed=NOW,
        key="was ->> 'k'",
    ),
    "agent_notes": Table(
        lambda r, k: {
            "id": k, **_place(r, k), "user_id": r.author, "title": k, "shared_chat_id": r.shared,
            "created_at": SAID_AT,
        },
        Rules(
            select=both(
                either(reached, _shared_here),
                _unless_narrowed(either(_sender_is_author, _shared_here)),
            ),
            insert=both(here, _sender_is_author),
            update=authored,
            delete=authored,
            kept=_sharing_stays_possible,
        ),
        key="id",
        rows=(*_THREE, SHARED),
        may_change=("updated_at", "title", "body", "tags", "shared_chat_id", "sources"),
    ),
    "agent_note_uses": Table(
        lambda r, k: {
            "conversation_id": _thread(r, k), "user_id": r.author, "tenant_key": TENANT,
            "note_id": k, "owner_id": ALICE, "last_action": "read",
        },
        Rules(*[both(here, _sender_is_author)] * 4),
        tried="last_action",
        key="note_id",
        may_change=("last_action", "last_used_at", "shown_place", "shown_at"),
        changed="updated",
    ),
    "agent_note_changes": Table(
        lambda r, k: {
            "note_id": k, "user_id": r.author, "tenant_key": TENANT, "turn_id": k, "was": "{}",
        },
        # inserted beside a note that is there, which the row tried here has none of
        Rules(
            both(either(reached, _shared_here), authored),
            nobody,
            nobody,
            both(either(reached, _shared_here), authored),
        ),
        tried="turn_id",
        changed="changed",
        key="note_id",
    ),
    "agent_summaries": Table(
        lambda r, k: {
            **_place(r, k), "user_id": r.subject, "content": k, "until_message_id": 1,
        },
        Rules(
            select=both(here, _unless_narrowed(lambda a, r: a.claim("actor") == r.subject)),
            insert=both(here, _summarised),
            update=both(here, _summarised),
            delete=both(here, _summarised, lambda a, r: speaks_for_self(a)),
        ),
        key="content",
        rows=(OWN, EVERYBODY, PRIVATELY),
        may_change=(
            "updated_at", "version", "content", "verbatim", "from_message_id", "until_message_id",
            "messages", "first_said_at",
        ),
    ),
    "agent_cards": Table(
        lambda r, k: {
            **_said(r, k), "turn_id": k, "card_id": k, "reply_to": k, "in_thread": True,
            "sequence": 1000,
        },
        Rules(of_turn, of_turn, of_turn, nobody),
        key="turn_id",
        may_change=(
            "updated_at", "card_id", "message_id", "sequence", "streaming", "opened_at",
        ),
    ),
    "agent_buttons": Table(
        lambda r, k: {
            "id": k, **_said(r, k), "group_id": k, "turn_id": k, "chunk": 0, "ordinal": 1,
            "chat_type": r.kind, "kind": "confirm", "label": "Confirm", "expires_at": NOW,
            "payload": Jsonb({"beside": HERE} if r == BESIDE else {}),
        },
        Rules(either(here, _shown_beside), of_turn, of_turn, nobody),
        rows=(*_THREE, BESIDE),
        tried="message_id",
        key="id",
        may_change=("message_id",),
        changed="om_card",
    ),
    "agent_presses": Table(
        lambda r, k: {
            "group_id": k, **_in_chat(r), "button_id": k.removeprefix("new "),
            "operator_id": r.author, "event_id": k,
        },
        Rules(
            either(here, _shown_beside),
            both(either(here, _shown_beside), _sender_is_author),
            nobody,
            nobody,
        ),
        rows=(*_THREE, BESIDE),
        tried="created_at",
        key="group_id",
    ),
    "agent_feedback": Table(
        lambda r, k: {
            **_said(r, k), "turn_id": k, "source": "button", "helpful": True, "updated_at": SAID_AT,
        },
        Rules(*[both(here, _sender_is_author)] * 4),
        key="turn_id",
        may_change=("updated_at", "helpful"),
        changed=TAKEN,
    ),
    "chat_conversations": Table(
        lambda r, k: _in_chat(r),
        Rules(here, here, here, here),
        named=lambda r: r.chat,
        key="chat_id",
        rows=(OWN, PRIVATELY),
        may_change=("updated_at", "active", "quiet", "started_at", "last_activity", "asked_ms",
                    "bot_talk"),
    ),
    "chat_transcript": Table(
        lambda r, k: {
            **_in_chat(r), "message_id": k, "author": "A", "author_id": r.author, "content": k,
            "timestamp": 1, "is_bot": False,
        },
        Rules(
            both(here, _unless_narrowed(lambda a, r: a.claim("actor") == r.author)),
            here,
            nobody,
            here,
        ),
        tried="author",
        changed="changed",
        key="message_id",
    ),
    "chat_topics": Table(
        lambda r, k: {**_in_chat(r), "message_id": k, "topic": 1},
        Rules(both(here, _unless_narrowed(nobody)), here, nobody, nobody),
        tried="topic",
        changed=7,
        key="message_id",
    ),
    # Written by a worker beside its turns, for operators.
    "agent_turn_records": Table(
        lambda r, k: {"turn_id": k, "short": "[0]"},
        Rules(nobody, **_READ_ONLY),
        tried="at",
        changed=TAKEN,
        key="turn_id",
        unread=("turn_id", "at", "short"),
    ),
    "agent_decisions": Table(
        lambda r, k: {
            **_in_chat(r), "message_id": k, "actor_id": r.author, "respond": True, "reason": "r",
            "tier": "explicit",
        },
        Rules(here, both(here, _sender_is_author), nobody, nobody),
        tried="created_at",
        key="message_id",
    ),
    "recalled_messages": Table(
        lambda r, k: {"message_id": k, "chat_id": r.chat},
        Rules(either(_same_chat, _in_the_group), **_READ_ONLY),
        tried="created_at",
        key="message_id",
    ),
    "agent_withdrawals": Table(
        lambda r, k: {"message_id": k, **_in_chat(r)},
        Rules(here, **_READ_ONLY),
        tried="created_at",
        key="message_id",
    ),
    "forgotten_people": Table(
        lambda r, k: {"mark": k},
        Rules(nobody, nobody, nobody, nobody),
        tried="at",
        key="mark",
    ),
    "agent_receipts": Table(
        lambda r, k: {"reader_id": r.author, "tenant_key": TENANT, "mark": "m", "draft": Jsonb({})},
        Rules(_reader, **_READ_ONLY),
        named=lambda r: str(r.author),
        tried="created_at",
        key="reader_id",
        unread=("salt", "mark", "draft"),
        rows=(OWN, ABOUT),
    ),
    "people": Table(
        lambda r, k: {"open_id": r.author, "tenant_key": TENANT},
        Rules(_named, **_READ_ONLY),
        named=lambda r: str(r.author),
        key="open_id",
        rows=(OWN, ABOUT),
    ),
    "chats": Table(
        lambda r, k: {**_in_chat(r), "chat_type": r.kind},
        Rules(either(here, _in_the_group), **_READ_ONLY),
        named=lambda r: r.chat,
        key="chat_id",
        rows=(OWN, PRIVATELY),
    ),
    "chat_members": Table(
        lambda r, k: {
            **_in_chat(r), "open_id": r.author, "joined_at": MEMBERS.get(str(r.author)),
            "left_at": NOW if r.author == ONCE_MEMBERS[0] else None,
            "seen_at": SAID_AT if r.author == ONCE_MEMBERS[1] else NOW,
        },
        Rules(_member_of_their_own_tenant, **_READ_ONLY),
        tried="seen_at",
        changed=TAKEN,
        key="open_id",
        rows=tuple(Row(who, author=who) for who in (*MEMBERS, *ONCE_MEMBERS)),
    ),
    # Everybody of the chat reads them; who added the bot changes them.
    "chat_rules": Table(
        lambda r, k: _in_chat(r),
        Rules(here, both(here, _bob_added_the_bot), both(here, _bob_added_the_bot), nobody),
        named=lambda r: r.chat,
        key="chat_id",
        rows=(OWN, PRIVATELY),
        may_change=(
            "updated_at", "mode", "language", "instructions", "proactive", "history", "choices",
        ),
    ),
    "chat_imports": Table(
        lambda r, k: {**_in_chat(r), "chat_type": r.kind, "started_by": BOB, "until": NOW},
        Rules(
            either(here, both(_of_the_tenant, _in_the_group)),
            both(here, _bob_added_the_bot),
            both(here, _bob_added_the_bot),
            nobody,
        ),
        named=lambda r: r.chat,
        key="chat_id",
        rows=(OWN, PRIVATELY),
        may_change=(
            "updated_at", "started_by", "since", "until", "state", "phase", "position", "estimated",
            "pages", "report", "error", "finished_at",
        ),
    ),
    "imported_messages": Table(
        lambda r, k: {
            "id": -_number(k), "sent_at": SAID_AT, "import_id": 1 if r.chat == HERE else 2,
            "tenant_key": TENANT,
            "message_id": k, "author_id": r.author, "author_name": "A", "content": k,
        },
        Rules(_imported, **_READ_ONLY),
        tried="author_name",
        changed="changed",
        key="message_id",
        rows=(OWN, PRIVATELY),
    ),
    "chat_managers": Table(
        lambda r, k: {**_in_chat(r), "open_id": r.author, "role": "adder"},
        Rules(both(here, _sender_is_author), **_READ_ONLY),
        tried="seen_at",
        changed=TAKEN,
        key="open_id",
        named=lambda r: str(r.author),
        rows=(ABOUT,),
    ),
    "agent_timers": Table(
        lambda r, k: {
            "id": k, **_said(r, k), "root_id": k, "chat_type": r.kind, "turn_id": k,
            "local_at": "2026-03-03T09:00", "zone": "UTC", "due_at": NOW,
        },
        Rules(
            select=both(here, _unless_narrowed(involved)),
            insert=of_turn,
            update=both(here, _sender_is_author),
            delete=nobody,
        ),
        key="id",
        may_change=(
            "updated_at", "content", "for_all", "for_people", "local_at", "zone", "repeats",
            "due_at", "changed_by",
        ),
    ),
    "agent_digest_sources": Table(
        lambda r, k: {"turn_id": k, **_in_chat(r), "message_id": k, "author_id": r.author},
        Rules(here, **_READ_ONLY),
        tried="message_id",
        changed="om_changed",
        key="turn_id",
    ),
    "user_tokens": Table(
        lambda r, k: {"tenant_key": TENANT, "open_id": r.author, "granted_at": SAID_AT},
        Rules(*[_at_their_own_place] * 4),
        named=lambda r: str(r.author),
        key="open_id",
        rows=(OWN, ABOUT),
        may_change=(
            "updated_at", "scopes", "granted_at", "access_until", "refresh_until", "sealed_with",
            "refreshed_by", "refresh_began_at", "ended", "ask", "ask_scopes", "ask_until",
            "ask_interval_s", "ask_sealed_with", "ask_outcome", "ask_card", "ask_aside",
            "ask_place", "ended_at", "language",
        ),
        tried="ended",
        changed="lost",
    ),
    "p2p_chats": Table(
        lambda r, k: {"tenant_key": TENANT, "open_id": r.author, "chat_id": r.chat},
        Rules(_member_themselves, both(here, _member_themselves, _alone), nobody, nobody),
        key="chat_id",
        named=lambda r: r.chat,
        rows=(OWN, PRIVATELY),
        tried="open_id",
        changed="ou_changed",
    ),
}  # fmt: skip

# What the console's role reads of everybody; and what only in a transaction that has kept the look.
AT_THE_CONSOLE = frozenset(
    "agent_chats agent_turns agent_turn_records agent_decisions agent_feedback people chats "
    "chat_members".split()
)
AT_THE_CONSOLE_LOOKING = frozenset(
    "agent_messages agent_working_memory agent_working_memory_history agent_notes agent_summaries "
    "chat_transcript agent_buttons".split()
)

# Views: whose rows they show, by the table they are made of and the key they have.
VIEWS: Mapping[str, tuple[str, str]] = {"agent_turn_texts": ("agent_messages", "turn_id")}

# What says who, where and of what a row is. Nobody with a token changes it.
IDENTITY = frozenset(
    "id tenant_key chat_id conversation_id user_id actor_id actor_name owner_id turn_id open_id "
    "origin parent_id cause "
    "root_id note_id group_id button_id operator_id author author_id auth_user_id role chunk "
    "created_at said_at at".split()
)
