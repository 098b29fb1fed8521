-- Purpose: which messages a prompt showed, so that an answer that tells one of them in words of its own goes
-- when it is taken back.

-- Of the turn's answer: ids of messages and turns, the question itself not among them.
alter table public.agent_turns add column given text[] not null default '{}'
  check (cardinality(given) <= 200);
grant update (given) on public.agent_turns to authenticated;
