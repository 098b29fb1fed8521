-- Purpose: a reminder whose text a later message changed goes with that message, too. Ids only.

alter table public.agent_timers add column changed_by text[] not null default '{}'
  check (cardinality(changed_by) <= 20);
grant update (changed_by) on public.agent_timers to authenticated;
