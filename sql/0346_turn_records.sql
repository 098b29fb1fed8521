-- Purpose: what a turn was made of, for a few days, and what people and chats use of the model.
--
-- A record holds ids, counts and times, no words: with the ids the prompt is built again from what the
-- memory still has. It goes with its turn, so whatever is forgotten or taken back leaves it, too.

create table public.agent_turn_records (
  turn_id text primary key references public.agent_turns (id) on delete cascade,
  at timestamptz not null default now(),
  record jsonb not null check (jsonb_typeof(record) = 'object' and length(record::text) <= 65536)
);
create index agent_turn_records_at_idx on public.agent_turn_records (at);

create table feishu_bot.model_usage (
  day date not null,                     -- in the time zone of the settings
  tenant_key text not null default '',
  chat_id text not null,
  actor_id text not null,                -- who asked
  turns bigint not null default 0,
  tokens_in bigint not null default 0,
  tokens_out bigint not null default 0,
  primary key (day, tenant_key, chat_id, actor_id)
);

alter table public.agent_turn_records enable row level security;
alter table feishu_bot.model_usage enable row level security;
revoke all on public.agent_turn_records from anon, authenticated;
revoke all on feishu_bot.model_usage from public;
grant select, insert, update, delete on public.agent_turn_records to service_role;
grant select on public.agent_turn_records, feishu_bot.model_usage to bot_console;
create policy agent_turn_records_console on public.agent_turn_records
  for select to bot_console using (true);
create policy model_usage_console on feishu_bot.model_usage
  for select to bot_console using (true);
