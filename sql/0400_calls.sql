-- Purpose: what is used beside the answers: calls of Feishu's API, against its monthly limit, and
-- requests to models in the background. Numbers of a day, of nobody in particular.

create table feishu_bot.calls (
  day date not null,                     -- in the time zone of the settings
  service text not null check (service in ('feishu', 'model')),
  name text not null check (length(name) between 1 and 60),  -- an API; judge, summary, embedding
  calls bigint not null default 0,
  tokens_in bigint not null default 0,
  tokens_out bigint not null default 0,
  primary key (day, service, name)
);

alter table feishu_bot.calls enable row level security;
revoke all on feishu_bot.calls from public;
grant select on feishu_bot.calls to bot_console;
create policy calls_console on feishu_bot.calls for select to bot_console using (true);
