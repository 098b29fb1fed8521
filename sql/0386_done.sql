-- Purpose: what the tools of a turn have changed, told also when another worker ends the turn.

-- Names of tools, in order, while the turn is open.
alter table public.agent_turns add column done text[] not null default '{}'
  check (cardinality(done) <= 100);
grant update (done) on public.agent_turns to authenticated;
