"""Who may do what with Alice's rows, table by table.

A table of schema `public` without a case here fails the build. To add one, append a `Case`: a row
of Alice's in the chat `HERE`, a second row that could be inserted, and who may do what. Rows are
seeded in this order.
"""

from __future__ import annotations

from datetime import UTC, datetime

from psycopg.types.json import Jsonb

from tests.support.access import SENDER, Case
from tests.support.actors import ALICE, BOB, HERE, OTHER_TENANT, TENANT, THERE

CONVERSATION = f"feishu:{HERE}:om_root"
LATER_THREAD = f"feishu:{HERE}:om_later"
TURN = "om_question"
LATER_TURN = "om_later_question"

# Names of actors, as in `tests.support.actors`.
SERVICE = frozenset({"service"})
SUBJECT = SERVICE | {"subject here", "subject elsewhere"}
TURN_OF_SUBJECT = SUBJECT | {"sender here"}
EVERYONE_HERE = SERVICE | {
    "subject here",
    "sender here",
    "other user",
    "other user mentioned by the subject",
    "other user who claims to be the service",
}

_ALICE_HERE = {
    "conversation_id": CONVERSATION,
    "user_id": ALICE,
    "tenant_key": TENANT,
    "chat_id": HERE,
}

_SAID_HERE = {
    "chat_id": HERE,
    "tenant_key": TENANT,
    "author": "Alice",
    "author_id": ALICE,
    "content": "hello",
    "timestamp": 1_772_500_000_000,
    "is_bot": False,
}
_DECIDED_HERE = {
    "chat_id": HERE,
    "tenant_key": TENANT,
    "respond": True,
    "reason": "explicit_trigger",
    "tier": "explicit",
}

_BUTTON_HERE = {
    **_ALICE_HERE,
    "group_id": "group",
    "turn_id": TURN,
    "chunk": 0,
    "ordinal": 1,
    "chat_type": "group",
    "kind": "confirm",
    "label": "Confirm",
    "expires_at": datetime(2126, 3, 3, tzinfo=UTC),
}
_PRESSED_HERE = {
    "button_id": "button",
    "chat_id": HERE,
    "tenant_key": TENANT,
    "event_id": "event",
}
_CARD_HERE = {
    **_ALICE_HERE,
    "card_id": "7355372766134157313",
    "reply_to": TURN,
    "in_thread": True,
    "sequence": 1000,
}

_OF_SUBJECT = {
    "select": TURN_OF_SUBJECT,
    "insert": TURN_OF_SUBJECT,
    "update": TURN_OF_SUBJECT,
    "delete": SUBJECT,
}

CASES: list[Case] = [
    Case(
        name="agent_chats",
        table="agent_chats",
        row={
            "id": CONVERSATION,
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_root",
        },
        new={
            "id": f"feishu:{HERE}:om_new",
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_new",
        },
        **_OF_SUBJECT,
        change={"title": "changed"},
    ),
    Case(
        name="agent_chats, another thread",
        table="agent_chats",
        row={
            "id": LATER_THREAD,
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_later",
        },
        new={
            "id": f"feishu:{HERE}:om_new",
            "user_id": ALICE,
            "tenant_key": TENANT,
            "chat_id": HERE,
            "root_id": "om_new",
        },
        **_OF_SUBJECT,
        change={"title": "changed"},
    ),
    Case(
        name="agent_turns",
        table="agent_turns",
        row={"id": TURN, **_ALICE_HERE, "actor_id": ALICE},
        new={"id": "om_new", **_ALICE_HERE, "actor_id": SENDER},
        **_OF_SUBJECT,
        change={"state": "failed"},
    ),
    Case(
        name="agent_turns, a later one",
        table="agent_turns",
        row={"id": LATER_TURN, **_ALICE_HERE, "actor_id": ALICE},
        new={"id": "om_latest", **_ALICE_HERE, "actor_id": SENDER},
        **_OF_SUBJECT,
        change={"state": "failed"},
    ),
    Case(
        name="agent_messages, a question",
        table="agent_messages",
        row={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "user",
            "content": "my secret",
            "actor_id": ALICE,
            "status": "received",
        },
        new={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "user",
            "chunk": 1,
            "content": "another",
            "actor_id": SENDER,
            "status": "received",
        },
        **_OF_SUBJECT,
        change={"error": "changed"},
    ),
    Case(
        name="agent_messages, an answer",
        table="agent_messages",
        row={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "assistant",
            "content": "your secret",
            "status": "sent",
        },
        new={
            **_ALICE_HERE,
            "turn_id": TURN,
            "role": "assistant",
            "chunk": 1,
            "content": "another",
            "status": "pending",
        },
        **_OF_SUBJECT,
        change={"status": "failed"},
    ),
    Case(
        name="agent_working_memory, of a conversation",
        table="agent_working_memory",
        row={**_ALICE_HERE, "scope": "chat", "content": Jsonb({"topic": "secret"})},
        new={
            **_ALICE_HERE,
            "conversation_id": f"feishu:{HERE}:om_new",
            "scope": "chat",
            "content": Jsonb({}),
        },
        **_OF_SUBJECT,
        change={"content": Jsonb({"topic": "changed"})},
    ),
    Case(
        name="agent_working_memory, of a person",
        table="agent_working_memory",
        row={
            "user_id": ALICE,
            "tenant_key": TENANT,
            "scope": "user",
            "content": Jsonb({"salary": 1}),
        },
        new={"user_id": ALICE, "tenant_key": TENANT, "scope": "user", "content": Jsonb({})},
        select=SUBJECT,
        insert=SUBJECT,
        update=SUBJECT,
        delete=SUBJECT,
        change={"content": Jsonb({"salary": 2})},
    ),
    Case(
        name="recalled_messages",
        table="recalled_messages",
        row={"message_id": "om_recalled", "chat_id": HERE},
        new={"message_id": "om_new", "chat_id": HERE},
        # Ids only, and Feishu's chat ids are unique across tenants.
        select=EVERYONE_HERE | {"other tenant"},
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"message_id": "om_changed"},
        gifts=({"chat_id": THERE},),
    ),
    Case(
        name="agent_turn_terms",
        table="agent_turn_terms",
        row={**_ALICE_HERE, "turn_id": TURN},
        seeded=False,
        new={
            **_ALICE_HERE,
            "turn_id": TURN,
            "first_id": 1,
            "asked_at": datetime(2026, 3, 3, tzinfo=UTC),
            "length": 1,
            "terms": "secret",
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=TURN_OF_SUBJECT,
        change={"length": 7},
    ),
    Case(
        name="agent_embeddings",
        table="agent_embeddings",
        # of the first two messages above
        row={**_ALICE_HERE, "id": 1, "turn_id": TURN, "model": "m", "embedding": [1.0, 0.0]},
        new={**_ALICE_HERE, "id": 2, "turn_id": TURN, "model": "m", "embedding": [0.0, 1.0]},
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=TURN_OF_SUBJECT,
        change={"model": "changed"},
    ),
    Case(
        name="agent_summaries",
        table="agent_summaries",
        row={**_ALICE_HERE, "content": "a secret, in short", "until_message_id": 1},
        new={
            **_ALICE_HERE,
            "conversation_id": LATER_THREAD,
            "content": "another",
            "until_message_id": 1,
        },
        **_OF_SUBJECT,
        change={"content": "changed"},
    ),
    Case(
        name="agent_notes, private",
        table="agent_notes",
        row={"id": "note_private", **_ALICE_HERE, "title": "my secret"},
        new={"id": "note_new", **_ALICE_HERE, "title": "another"},
        select=SUBJECT,
        insert=SUBJECT,
        update=SUBJECT,
        delete=SUBJECT,
        change={"body": "changed"},
    ),
    Case(
        name="agent_notes, shared with the chat",
        table="agent_notes",
        row={"id": "note_shared", **_ALICE_HERE, "title": "ours", "shared_chat_id": HERE},
        new={"id": "note_new", **_ALICE_HERE, "title": "another", "shared_chat_id": HERE},
        select=SUBJECT | EVERYONE_HERE,
        insert=SUBJECT,
        update=SUBJECT,
        delete=SUBJECT,
        change={"body": "changed"},
    ),
    Case(
        name="agent_note_uses",
        table="agent_note_uses",
        row={
            "conversation_id": CONVERSATION,
            "user_id": ALICE,
            "tenant_key": TENANT,
            "note_id": "note_private",
            "last_action": "created",
        },
        new={
            "conversation_id": CONVERSATION,
            "user_id": ALICE,
            "tenant_key": TENANT,
            "note_id": "note_shared",
            "last_action": "read",
        },
        select=SUBJECT,
        insert=SUBJECT,
        update=SUBJECT,
        delete=SUBJECT,
        change={"last_action": "updated"},
    ),
    Case(
        name="agent_buttons",
        table="agent_buttons",
        row={"id": "button", **_BUTTON_HERE, "actor_id": ALICE},
        new={"id": "another button", **_BUTTON_HERE, "actor_id": SENDER},
        select=EVERYONE_HERE,
        insert=SERVICE | {"subject here", "sender here"},
        # Whoever answers the turn that shows it: Alice asked.
        update=SERVICE | {"subject here"},
        delete=SERVICE,
        change={"message_id": "om_card"},
        gifts=({"user_id": BOB}, {"actor_id": BOB}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="agent_presses",
        table="agent_presses",
        row={"group_id": "group", **_PRESSED_HERE, "operator_id": ALICE},
        new={"group_id": "another group", **_PRESSED_HERE, "operator_id": SENDER},
        select=EVERYONE_HERE,
        insert=EVERYONE_HERE,
        update=SERVICE,
        delete=SERVICE,
        change={"event_id": "changed"},
        gifts=({"operator_id": BOB}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="agent_cards",
        table="agent_cards",
        row={"turn_id": TURN, **_CARD_HERE, "actor_id": ALICE},
        new={"turn_id": LATER_TURN, **_CARD_HERE, "actor_id": SENDER},
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=TURN_OF_SUBJECT,
        delete=SERVICE,
        change={"message_id": "om_card"},
    ),
    Case(
        name="chat_conversations",
        table="chat_conversations",
        row={"chat_id": HERE, "tenant_key": TENANT},
        new={"chat_id": HERE, "tenant_key": TENANT},
        select=EVERYONE_HERE,
        insert=EVERYONE_HERE,
        update=EVERYONE_HERE,
        delete=EVERYONE_HERE,
        change={"active": True},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="chat_transcript",
        table="chat_transcript",
        row={**_SAID_HERE, "message_id": "om_said"},
        new={**_SAID_HERE, "message_id": "om_new"},
        select=EVERYONE_HERE,
        insert=EVERYONE_HERE,
        update=EVERYONE_HERE,
        delete=EVERYONE_HERE,
        change={"content": "changed"},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="agent_decisions",
        table="agent_decisions",
        row={**_DECIDED_HERE, "message_id": "om_decided", "actor_id": ALICE},
        new={**_DECIDED_HERE, "message_id": "om_new", "actor_id": SENDER},
        select=EVERYONE_HERE,
        insert=EVERYONE_HERE,
        update=SERVICE,
        delete=SERVICE,
        change={"reason": "changed"},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="people",
        table="people",
        row={"open_id": ALICE, "tenant_key": TENANT, "name": ""},
        new={"open_id": "ou_new", "tenant_key": TENANT, "name": ""},
        # Whoever's turn speaks of her, as subject or as sender, wherever it is.
        select=SUBJECT | {"sender here", "sender elsewhere", "other user mentioned by the subject"},
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"auth_user_id": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88"},
        gifts=({"open_id": BOB}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="chats",
        table="chats",
        row={"chat_id": HERE, "tenant_key": TENANT, "chat_type": "group"},
        new={"chat_id": "oc_new", "tenant_key": TENANT, "chat_type": "group"},
        # A turn's own chat, whoever's turn it is.
        select=EVERYONE_HERE,
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"name": "changed"},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="chat_members",
        table="chat_members",
        row={"chat_id": HERE, "tenant_key": TENANT, "open_id": ALICE},
        new={"chat_id": HERE, "tenant_key": TENANT, "open_id": "ou_new"},
        # Alice about herself, wherever she asks.
        select=SUBJECT,
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"left_at": datetime(2026, 3, 3, tzinfo=UTC)},
        gifts=({"open_id": BOB}, {"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="chat_managers",
        table="chat_managers",
        row={"chat_id": HERE, "tenant_key": TENANT, "open_id": "ou_manager", "role": "adder"},
        new={"chat_id": HERE, "tenant_key": TENANT, "open_id": "ou_new", "role": "manager"},
        select=SERVICE,
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"seen_at": datetime(2026, 3, 3, tzinfo=UTC)},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="chat_rules",
        table="chat_rules",
        # Everybody of the chat reads them; nobody of these manages it.
        row={"chat_id": HERE, "tenant_key": TENANT},
        new={"chat_id": HERE, "tenant_key": TENANT},
        select=EVERYONE_HERE,
        insert=SERVICE,
        update=SERVICE,
        delete=SERVICE,
        change={"mode": "all"},
        gifts=({"chat_id": THERE}, {"tenant_key": OTHER_TENANT}),
    ),
    Case(
        name="agent_working_memory_history",
        table="agent_working_memory_history",
        row={**_ALICE_HERE, "scope": "chat"},
        seeded=False,
        new={
            **_ALICE_HERE,
            "scope": "chat",
            "working_memory_id": 1,
            "actor_id": SENDER,
            "was": Jsonb({}),
            "became": Jsonb({}),
        },
        select=TURN_OF_SUBJECT,
        insert=TURN_OF_SUBJECT,
        update=SERVICE,
        delete=TURN_OF_SUBJECT,
        change={"scope": "user"},
    ),
]
