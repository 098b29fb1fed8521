-- Purpose: in which thread a message was said that was decided on, so that the decision can be explained
-- where it was taken.

alter table public.agent_decisions add column root_id text;  -- null: outside of threads, or not known
