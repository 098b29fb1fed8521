-- Purpose: a rule of a chat that only the bot reads needs no column of its own.

alter table public.chat_rules add column choices jsonb not null default '{}'  -- rules without a column
  check (jsonb_typeof(choices) = 'object' and length(choices::text) <= 4000);
grant update (choices) on public.chat_rules to authenticated;
