-- Purpose: an answer made from somebody's file, picture or quoted message goes when that is taken back.

-- The messages, besides the question itself, whose contents the answer was given. Ids only.
alter table public.agent_turns add column read_messages text[] not null default '{}'
  check (cardinality(read_messages) <= 50);
grant update (read_messages) on public.agent_turns to authenticated;
create index agent_turns_read_messages_idx on public.agent_turns using gin (read_messages)
  where read_messages <> '{}';
