-- Purpose: how a turn ended is one value, written in the transaction that ends it.
--
-- `outcome` and `outcome_reason` are written by the trigger agent_turns_end, and null or '' while the turn is
-- under way. Turns that ended before are filled in by backfills/0530.

alter table public.agent_turns
  add column intended jsonb,  -- what the stored reply is once people have it, {outcome, reason}; null: an answer
  add column outcome text,
  add column outcome_reason text not null default '';
alter table public.agent_turns add constraint agent_turns_outcome_known check (outcome in (
  'answered', 'apologised', 'refused', 'stopped', 'silent', 'undelivered', 'taken_back', 'offer')) not valid;
grant update (intended) on public.agent_turns to authenticated;
create index agent_turns_undelivered_idx on public.agent_turns (updated_at) where outcome = 'undelivered';

-- The same of a turn that waits for the memory.
alter table feishu_bot.spool add column intended jsonb;
