-- Purpose: an answer that is being written can be stopped.

-- One more kind of button: `stop` stands in the card while it is written (chunk -1: in none of those
-- that are stored).
alter table public.agent_buttons drop constraint agent_buttons_kind_check;
alter table public.agent_buttons add constraint agent_buttons_kind_check
  check (kind in ('follow_up', 'confirm', 'show', 'share', 'stop'));

-- Turns that were asked to stop, for whichever worker has them, now or after a crash. Ids only, and
-- for a day.
create table feishu_bot.stops (
  turn_id text primary key check (length(turn_id) between 1 and 200),
  asked_at timestamptz not null default now()
);
create index stops_asked_idx on feishu_bot.stops (asked_at);
alter table feishu_bot.stops enable row level security;
revoke all on feishu_bot.stops from public;
