"""Every column that can hold people's words, and how each is deleted.

A column that is in the catalogue and not here fails `test_reading_back.py`. Name the function that
deletes its words, or list it with the columns that hold ids, hashes and fixed words alone.
"""

from __future__ import annotations

COLUMNS = """
select c.relnamespace::regnamespace || '.' || c.relname, a.attname, format_type(a.atttypid, null)
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = ''
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and c.relkind in ('r', 'p')
  and format_type(a.atttypid, null) in
      ('text', 'text[]', 'character varying', 'json', 'jsonb', 'json[]', 'jsonb[]')
order by 1, 2
"""

# By table: how its rows go, the columns that hold words, and those that hold ids and fixed words.
_TABLES: dict[str, tuple[str, str, str]] = {
    "bot_private.import_joins": (
        "Remove in /import; goes with its import",
        "name",
        "",
    ),
    "bot_private.import_members": (
        "Remove in /import; forget_person",
        "",
        "open_id",
    ),
    "bot_private.import_threads": (
        "goes when the import has ended, or with it",
        "",
        "position thread_id",
    ),
    "bot_private.source_terms": (
        "forget_source_terms, for a retracted source; goes with its turn",
        "",
        "source turn_id",
    ),
    "bot_private.talk_terms": (
        "forget_source_terms; forget_readers when no turn is left that read it",
        "",
        "source",
    ),
    "bot_private.told_documents": (
        "forget_person; drop_told_document when the document is closed",
        "",
        "actor_id actor_tenant chat_id chat_type kind tenant_key token",
    ),
    "bot_private.user_token_seals": (
        "drop_seals: Disconnect, forget_person; no role reads it",
        "",
        "kind open_id sealed tenant_key",
    ),
    "feishu_bot.arrivals": (
        "kinds of events only",
        "",
        "kind",
    ),
    "feishu_bot.calls": (
        "names of calls only",
        "",
        "name service",
    ),
    "feishu_bot.console_audit": (
        "forget_in_audit; RETENTION_DAYS",
        "about",
        "action admin",
    ),
    "feishu_bot.console_links": (
        "an hour after it was made; administrators only",
        "",
        "admin",
    ),
    "feishu_bot.console_sessions": (
        "when the administrator leaves; administrators only",
        "",
        "admin",
    ),
    "feishu_bot.inbox": (
        "prune_inbox",
        "",
        "key",
    ),
    "feishu_bot.jobs": (
        "forget_in_queue: a retraction, /forget; goes when the job is done",
        "args events",
        "lock status task unique_key",
    ),
    "feishu_bot.leases": (
        "names of processes only",
        "",
        "holder name",
    ),
    "feishu_bot.migrations": (
        "names of files only",
        "",
        "name",
    ),
    "feishu_bot.model_usage": (
        "forget_rows_of; forget_old",
        "",
        "actor_id chat_id tenant_key",
    ),
    "feishu_bot.person_rates": (
        "forget_rows_of; forget_old",
        "",
        "open_id tenant_key",
    ),
    "feishu_bot.stops": (
        "a day after it was asked for",
        "",
        "turn_id",
    ),
    "feishu_bot.workers": (
        "names of channels only",
        "",
        "channel",
    ),
    "public.agent_buttons": (
        "drop_turn, drop_card; forget_person",
        "label payload",
        "actor_id chat_id chat_type conversation_id group_id id kind message_id "
        "tenant_key turn_id user_id",
    ),
    "public.agent_cards": (
        "drop_turn, drop_card; forget_person",
        "",
        "actor_id card_id chat_id conversation_id message_id reply_to tenant_key turn_id user_id",
    ),
    "public.agent_chats": (
        "drop_words_of_messages empties the title; forget_conversation",
        "title",
        "chat_id chat_type id root_id tenant_key user_id",
    ),
    "public.agent_decisions": (
        "drop_message empties the cue; forget_person; RETENTION_DAYS",
        "cue",
        "actor_id chat_id message_id reason root_id tenant_key tier verdict",
    ),
    "public.agent_digest_sources": (
        "drop_digests_of; goes with its turn",
        "",
        "author_id chat_id message_id tenant_key turn_id",
    ),
    "public.agent_embeddings": (
        "goes with its message",
        "",
        "actor_id chat_id conversation_id model tenant_key turn_id user_id",
    ),
    "public.agent_feedback": (
        "drop_turn; forget_person",
        "",
        "actor_id chat_id conversation_id source tenant_key turn_id user_id",
    ),
    "public.agent_messages": (
        "drop_turn, drop_card, take_back_calls; forget_person; RETENTION_DAYS",
        "actor_name content error file tool_calls",
        "actor_id chat_id conversation_id message_id quotes role status tenant_key turn_id user_id",
    ),
    "public.agent_note_changes": (
        "take_back_notes; goes with its note",
        "was was_sources",
        "note_id tenant_key turn_id user_id",
    ),
    "public.agent_note_uses": (
        "goes with its note or its conversation",
        "",
        "conversation_id last_action note_id owner_id tenant_key user_id",
    ),
    "public.agent_notes": (
        "take_back_notes, drop_item; forget_person",
        "title body tags sources",
        "chat_id conversation_id id shared_chat_id tenant_key turn_id user_id",
    ),
    "public.agent_presses": (
        "forget_person",
        "",
        "button_id chat_id event_id group_id operator_id tenant_key",
    ),
    "public.agent_receipts": (
        "ids, counts and hashes; forget_person takes the reader and the salt away",
        "",
        "draft hash line mark reader_id salt tenant_key",
    ),
    "public.agent_summaries": (
        "drop_words_of_messages, forget_summary; forget_person",
        "content verbatim",
        "chat_id conversation_id tenant_key user_id",
    ),
    "public.agent_timers": (
        "take_back_timers; forget_person; RETENTION_DAYS",
        "content repeats",
        "actor_id changed_by chat_id chat_type conversation_id for_people id kind "
        "language local_at root_id state tenant_key turn_id user_id zone",
    ),
    "public.agent_turn_records": (
        "drop_turn; goes with its turn; TRACE_DAYS",
        "",
        "short turn_id",
    ),
    "public.agent_turns": (
        "drop_turn empties what was shown; forget_person; RETENTION_DAYS",
        "error intended shown done",
        "actor_id again_of cause chat_id conversation_id drawn_on given id kept_cards "
        "offered_in origin outcome outcome_reason parent_id read_messages state "
        "tenant_key user_id",
    ),
    "public.agent_withdrawals": (
        "drop_withdrawal when the card is gone; RETENTION_DAYS",
        "",
        "chat_id message_id tenant_key",
    ),
    "public.agent_working_memory": (
        "take_back_facts, forget_fact; forget_person",
        "content sources",
        "actor_id chat_id conversation_id scope tenant_key user_id",
    ),
    "public.agent_working_memory_history": (
        "rewrite_memory, forget_fact; forget_person; RETENTION_DAYS",
        "became was was_sources",
        "actor_id chat_id conversation_id scope tenant_key turn_id user_id",
    ),
    "public.chat_conversations": (
        "RETENTION_DAYS",
        "bot_talk",
        "chat_id tenant_key",
    ),
    "public.chat_imports": (
        "Remove in /import; forget_person empties who began it",
        "error report",
        "chat_id chat_type phase position started_by state tenant_key",
    ),
    "public.chat_managers": (
        "forget_person; when they leave",
        "",
        "chat_id open_id role tenant_key",
    ),
    "public.chat_members": (
        "forget_person; when they leave",
        "",
        "chat_id open_id tenant_key",
    ),
    "public.chat_rules": (
        "set_chat_rule; what the group decided about itself",
        "instructions",
        "chat_id choices history language mode tenant_key",
    ),
    "public.chat_topics": (
        "goes with its line of the transcript",
        "",
        "chat_id message_id tenant_key",
    ),
    "public.chat_transcript": (
        "recall_message, drop_turn, forget_in_transcript; RETENTION_DAYS",
        "author content",
        "author_id chat_id message_id quotes root_id tenant_key",
    ),
    "public.chats": (
        "RETENTION_DAYS after the bot left",
        "name",
        "chat_id chat_type tenant_key",
    ),
    "public.forgotten_people": (
        "a hash; 40 days",
        "",
        "mark",
    ),
    "public.imported_messages": (
        "recall_message; Remove in /import; forget_person; RETENTION_DAYS",
        "author_name content",
        "author_id message_id root_id tenant_key",
    ),
    "public.p2p_chats": (
        "forget_person",
        "",
        "chat_id open_id person_tenant tenant_key",
    ),
    "public.people": (
        "forget_person",
        "name",
        "open_id tenant_key",
    ),
    "public.recalled_messages": (
        "ids only; RETENTION_DAYS",
        "",
        "chat_id message_id",
    ),
    "public.user_tokens": (
        "disconnect_user; forget_person",
        "ask",
        "ask_card ask_outcome ask_place ask_scopes ask_sealed_with ended language open_id "
        "refreshed_by scopes sealed_with tenant_key",
    ),
}
PLACES = {
    f"{table}.{column}": how
    for table, (how, words, ids) in _TABLES.items()
    for column in (*words.split(), *ids.split())
}
# What even who verifies a receipt cannot read: keys, seals, the console's sign-in, and receipts,
# which are verified themselves.
UNREAD = {
    name
    for name in PLACES
    if name.rsplit(".", 1)[0]
    in {
        "bot_private.user_token_seals",
        "feishu_bot.console_links",
        "feishu_bot.console_sessions",
        "public.agent_receipts",
    }
}
