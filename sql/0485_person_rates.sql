-- Purpose: how much each person may still ask for, shared by all workers. Rows last ten minutes.

create table feishu_bot.person_rates (
  tenant_key text not null check (length(tenant_key) <= 200),
  open_id text not null check (length(open_id) between 1 and 200),
  level real not null,             -- requests left; below 0 where workers together took too many
  at_ms bigint not null,           -- when that was so, ms since epoch, by the clock of the events
  told boolean not null default false,  -- that requests are skipped; until the level is full again
  primary key (tenant_key, open_id)
);
alter table feishu_bot.person_rates enable row level security;
revoke all on feishu_bot.person_rates from public;
