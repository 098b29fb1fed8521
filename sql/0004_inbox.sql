-- Purpose: the inbox in front of the queue. The queue's own tables are Procrastinate's; they live in
-- this schema too, which no API exposes.

create table feishu_bot.inbox (
  key text primary key,                   -- message:{message_id} or event:{event_id}
  received_at timestamptz not null default now()
);
create index inbox_received_idx on feishu_bot.inbox (received_at);
alter table feishu_bot.inbox enable row level security;

-- Accepts an event once: the idempotency key and the job in one statement.
-- Returns the job's id, or null when the event was accepted before.
create function feishu_bot.enqueue_event(
  p_key text, p_queue text, p_task text, p_lock text, p_args jsonb
) returns bigint
language sql volatile security invoker set search_path = feishu_bot
as $$
  with fresh as (
    insert into feishu_bot.inbox (key) values (p_key) on conflict do nothing returning key
  )
  select (procrastinate_defer_jobs_v1(array[
    row(p_queue, p_task, 0, p_lock, null, p_args, null)::procrastinate_job_to_defer_v1
  ]))[1]
  from fresh
$$;

-- Forgets idempotency keys older than p_hours; Feishu's last retry comes after 7.1 hours.
create function feishu_bot.prune_inbox(p_hours integer) returns bigint
language sql volatile security invoker set search_path = ''
as $$
  with gone as (
    delete from feishu_bot.inbox
    where received_at < now() - make_interval(hours => greatest(p_hours, 24)) returning 1
  )
  select count(*) from gone
$$;

revoke all on schema feishu_bot from public;
do $$
declare
  t regclass;
begin
  revoke execute on function feishu_bot.enqueue_event(text, text, text, text, jsonb) from public;
  revoke execute on function feishu_bot.prune_inbox(integer) from public;
  for t in select c.oid::regclass from pg_class c
           where c.relnamespace = 'feishu_bot'::regnamespace and c.relkind = 'r' loop
    execute format('alter table %s enable row level security', t);
  end loop;
end
$$;
