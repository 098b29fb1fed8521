-- Purpose: what an answer was given is half as large: messages of Feishu are kept as the numbers that their ids are.

-- Of what the answer was given the messages whose ids are om_ and 32 digits, as these digits; `given` has what else there
-- is, and of answers from before this column everything. bot_private.given_ids tells both.
alter table public.agent_turns add column given_messages uuid[] not null default '{}';
alter table public.agent_turns add constraint agent_turns_given_messages_check
  check (cardinality(given_messages) <= 200) not valid;
grant update (given_messages) on public.agent_turns to authenticated;

-- next to every answer is given something
drop index public.agent_turns_given_idx;
create index agent_turns_given_idx on public.agent_turns (hashtextextended(chat_id, 0), created_at);

-- A turn is written three times, twice whole: the room of what is over is used again after a twentieth of the table, not
-- after a fifth.
alter table public.agent_turns set (autovacuum_vacuum_scale_factor = 0.05);
