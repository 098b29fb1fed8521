-- Purpose: what one process on one machine does at a time: it holds a lease, and renews it while it lives.

create table feishu_bot.leases (
  name text primary key,        -- long connection
  holder text not null,         -- a name that the process has made up
  held_until timestamptz not null  -- by this server's clock: no machine's own matters
);
alter table feishu_bot.leases enable row level security;
revoke all on feishu_bot.leases from public;
