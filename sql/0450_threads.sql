-- Purpose: a person's thread as a number, by which its messages are found in order: half of what messages
-- took was their ids, once more in every index.
--
-- The number is a digest of all that makes the thread; who looks for it compares the texts too.
-- A column, not an index on an expression: under row-level security an index is used only for what is
-- compared by an operator that tells nothing of its arguments, and a digest's function may.

drop index public.agent_messages_history_idx;
drop index public.agent_messages_user_idx;
alter table public.agent_messages add column thread bigint not null generated always as (
  ('x' || left(md5(tenant_key || ' ' || conversation_id || ' ' || user_id), 16))::bit(64)::bigint) stored;
create index agent_messages_thread_idx on public.agent_messages (thread, id);
-- in these, one entry holds all rows of a conversation or of a person
create index agent_messages_conversation_idx on public.agent_messages (conversation_id);
create index agent_messages_user_idx on public.agent_messages (user_id);
