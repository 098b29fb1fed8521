-- Purpose: what recall searches, in a fifth of the room: the words of every turn as numbers.
--
-- Reached through functions that run as its owner and apply the rule of the messages; no token and no
-- API reaches it. A row goes with the turn's first message.

create table bot_private.turn_words (
  first_id bigint primary key references public.agent_messages (id) on delete cascade,
  place bigint not null,          -- of tenant and chat, as recall_number makes it
  thread bigint not null,         -- of tenant and conversation
  asked_at timestamptz not null,
  length integer not null,        -- tokens in the turn
  words integer[] not null        -- as recall_words makes them; one that stands twice, twice
);
create index turn_words_time_idx on bot_private.turn_words (place, asked_at);
create index turn_words_thread_idx on bot_private.turn_words (thread, first_id);
create index turn_words_words_idx on bot_private.turn_words using gin (words)
  with (fastupdate = off);
alter table bot_private.turn_words enable row level security;
revoke all on bot_private.turn_words from public, anon, authenticated, service_role;
-- what is taken back is compared with what else was said; operators look for what lies wrong
grant select, truncate on bot_private.turn_words to service_role;
