-- Purpose: the inbox in front of the queue. The queue's own tables are Procrastinate's; they live in
-- this schema too, which no API exposes.

create table feishu_bot.inbox (
  key text primary key,                   -- message:{message_id} or event:{event_id}
  received_at timestamptz not null default now()
);
create index inbox_received_idx on feishu_bot.inbox (received_at);
alter table feishu_bot.inbox enable row level security;

revoke all on schema feishu_bot from public;
do $$
declare
  t regclass;
begin
  for t in select c.oid::regclass from pg_class c
           where c.relnamespace = 'feishu_bot'::regnamespace and c.relkind = 'r' loop
    execute format('alter table %s enable row level security', t);
  end loop;
end
$$;
