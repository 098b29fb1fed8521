-- Purpose: recall finds a word in a place through an index, whatever was said elsewhere.

-- The token of the place, as bot_private.recall_place makes it.
update public.agent_turn_terms
set terms = terms || array_to_tsvector(array['@' || left(md5(tenant_key || ' ' || chat_id), 12)]);
create index agent_turn_terms_words_idx on public.agent_turn_terms
  using gin (terms) with (fastupdate = off);

-- The newest of a chat, those of a time, the neighbours of a turn.
create index agent_turn_terms_time_idx on public.agent_turn_terms (chat_id, asked_at);
create index agent_turn_terms_place_idx on public.agent_turn_terms (conversation_id, first_id);
drop index public.agent_turn_terms_chat_idx;
drop index public.agent_turn_terms_user_idx;
drop index public.agent_turn_terms_thread_idx;
