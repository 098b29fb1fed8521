-- Purpose: what web processes and workers of the version before call until they are restarted: they
-- name the queue, of which there is one. To go with the next release.

drop function if exists feishu_bot.enqueue_event(text, text, text, text, jsonb);
create or replace function feishu_bot.enqueue_event(
  p_key text, p_queue text, p_task text, p_lock text, p_args jsonb, p_lock_in_topic text default null
) returns bigint
language sql volatile security invoker set search_path = feishu_bot
as $$ select enqueue(p_key, p_task, p_lock, p_args, p_lock_in_topic) $$;

create or replace function feishu_bot.claim_jobs(p_worker bigint, p_queue text, p_most integer)
returns jsonb
language sql volatile security invoker set search_path = feishu_bot
as $$ select take_jobs(p_worker, p_most) $$;

create or replace function feishu_bot.work_round(
  p_worker bigint, p_queue text, p_running bigint[], p_most integer,
  p_missing bigint[] default null
) returns jsonb
language sql volatile security invoker set search_path = feishu_bot
as $$ select look_round(p_worker, p_running, p_most, p_missing) $$;

create or replace function feishu_bot.defer_tending(
  p_queue text, p_task text, p_priority integer, p_at_once integer, p_whose text, p_args text
) returns boolean
language sql volatile security invoker set search_path = feishu_bot
as $$
  select queue_tending(p_task, p_priority, p_at_once, p_whose, p_args);
  select true
$$;

create or replace function feishu_bot.defer_timer(
  p_queue text, p_task text, p_timer_id text, p_args text
) returns boolean
language sql volatile security invoker set search_path = feishu_bot
as $$
  select queue_timer(p_task, p_timer_id, p_args);
  select true
$$;
