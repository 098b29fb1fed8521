-- Purpose: a message that waits for the one before it in its conversation starts when that one ends.
--
-- The queue tells workers of new jobs only (Procrastinate 3.10, schema.sql); one that was held back
-- by its lock would be found at the next poll, seconds later.

create function feishu_bot.wake_waiting() returns trigger
language plpgsql security invoker set search_path = ''
as $$
declare
  v_waiting bigint;
begin
  select j.id into v_waiting
  from feishu_bot.procrastinate_jobs j
  where j.lock = old.lock and j.status = 'todo'
    and (j.scheduled_at is null or j.scheduled_at <= now())
  order by j.id limit 1;
  if v_waiting is not null then
    perform pg_notify(
      'procrastinate_queue_v1#' || old.queue_name,
      json_build_object('type', 'job_inserted', 'job_id', v_waiting)::text
    );
  end if;
  return null;
end
$$;
revoke execute on function feishu_bot.wake_waiting() from public;

create trigger wake_waiting_after_delete
  after delete on feishu_bot.procrastinate_jobs
  for each row when (old.status = 'doing' and old.lock is not null)
  execute function feishu_bot.wake_waiting();

create trigger wake_waiting_after_end
  after update of status on feishu_bot.procrastinate_jobs
  for each row when (old.status = 'doing' and new.status <> 'doing' and old.lock is not null)
  execute function feishu_bot.wake_waiting();
