-- Purpose: which kinds of events have arrived from Feishu, and what was refused at the webhook. An event
-- that is subscribed to shows by nothing else: Feishu has no call that lists subscriptions.

create table feishu_bot.arrivals (
  kind text primary key check (length(kind) between 1 and 100),  -- im.message.receive_v1, refused: …
  first_at timestamptz not null default now(),
  last_at timestamptz not null default now()                     -- within the hour
);
alter table feishu_bot.arrivals enable row level security;
revoke all on feishu_bot.arrivals from public;
