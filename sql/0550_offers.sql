-- Purpose: one offer a person, thread and hour.

-- Of an offer the thread of the question, or the group in whose main chat it stands.
alter table public.agent_turns add column offered_in text;
create index agent_turns_offered_idx on public.agent_turns (tenant_key, user_id, offered_in, created_at)
  where offered_in is not null;
