-- Purpose: jobs that write to the memory what it missed while it was away (task feishu.store). The jobs of one
-- chat run in order. A job's arguments are the fields of a turn's context and
--   turn: what restore_turn takes, with its `state`; absent if the job has only writes,
--   writes: [{function, params}], calls that follow the turn,
--   message_ids, people: what and whom the writes tell of.
-- A recall is such a job too: {recall: {p_message_id, p_chat_id}}.

-- Whether the recall of one of these messages waits for the memory.
create or replace function feishu_bot.recall_waits(p_messages text[]) returns boolean
language sql stable security invoker set search_path = feishu_bot
as $$
  select exists (
    select from unnest(p_messages) m
    where exists (select from jobs j where j.lock = 'recall ' || m and j.status = 'waiting')
       or exists (select from jobs j where j.lock = 'recall ' || m and j.status = 'running'))
$$;

-- The messages whose recall takes a turn back: its question, and the message it came from.
create or replace function feishu_bot.messages_of_turn(p_turn jsonb) returns text[]
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array_remove(array[p_turn ->> 'turn_id', bot_private.goes_with(p_turn -> 'origin')], null)
$$;

-- The messages that a turn's answer was made from.
create or replace function feishu_bot.sources_of_turn(p_turn jsonb) returns text[]
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(select regexp_replace(g, '^(read|answer):', '')
               from jsonb_array_elements_text(coalesce(p_turn -> 'given', '[]')) g)
$$;

-- The jobs of a chat that hold turns and have not ended.
create or replace function feishu_bot.turn_jobs(p_chat_id text) returns setof feishu_bot.jobs
language sql stable security invoker set search_path = feishu_bot
as $$
  select j.* from jobs j
  where j.lock = 'store ' || p_chat_id and j.status = 'waiting' and j.args ? 'turn'
  union all
  select j.* from jobs j
  where j.lock = 'store ' || p_chat_id and j.status = 'running' and j.args ? 'turn'
$$;

-- What a turn has to know before it asks the memory: {turn: as an earlier attempt stored it, or null; behind:
-- whether other turns of the conversation still wait; recalled: whether it was taken back}.
create or replace function feishu_bot.waiting_turn(p_chat_id text, p_conversation_id text, p_turn jsonb)
returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'turn', (select j.args -> 'turn' from turn_jobs(p_chat_id) j
             where j.args #>> '{turn,turn_id}' = p_turn ->> 'turn_id'),
    'behind', exists (select from turn_jobs(p_chat_id) j
                      where j.args ->> 'conversation_id' = p_conversation_id),
    'recalled', recall_waits(messages_of_turn(p_turn)))
$$;

-- The arguments of a job without what tells of a message that was taken back, or of p_cards that answered it. Its
-- question takes the whole turn; a source takes the answer. What was sent keeps its message_id, so that the memory
-- can withdraw it.
create or replace function feishu_bot.without_message(
  p_args jsonb, p_message_id text, p_cards text[] default '{}'
) returns jsonb
language sql immutable security invoker set search_path = feishu_bot
as $$
  with turn as (
    select p_args -> 'turn' as row,
           p_message_id = any (messages_of_turn(p_args -> 'turn')) as is_own,
           p_message_id = any (messages_of_turn(p_args -> 'turn') || sources_of_turn(p_args -> 'turn')) as is_gone
  ), writes as (
    select coalesce(jsonb_agg(
      case when records.left_over is null then w.value
           else jsonb_set(w.value, '{params,p_records}', to_jsonb(records.left_over::text)) end
      order by w.ordinality), '[]') as kept
    from turn, jsonb_array_elements(p_args -> 'writes') with ordinality w
    cross join lateral (
      select case when w.value #> '{params,p_records}' is not null then coalesce(
        (select jsonb_agg(r) from jsonb_array_elements((w.value #>> '{params,p_records}')::jsonb) r
         where r ->> 'message_id' <> all (p_cards || p_message_id)), '[]') end as left_over) records
    where not (turn.is_gone is true and w.value ->> 'function' = 'continue_conversation')
      and w.value #>> '{params,p_message_id}' is distinct from p_message_id
      and records.left_over is distinct from '[]'
  )
  select p_args || jsonb_build_object('writes', writes.kept)
    || case when turn.is_gone then jsonb_build_object('turn', turn.row
         || case when turn.is_own then '{"content": ""}'::jsonb else '{}' end
         || jsonb_build_object('state', 'cancelled', 'tool_calls', '[]'::jsonb, 'shown', null, 'cards', (
              select coalesce(jsonb_agg(c || '{"content": "", "file": null}' order by c -> 'chunk'), '[]')
              from jsonb_array_elements(turn.row -> 'cards') c)))
       else '{}' end
  from turn, writes
$$;

-- Keeps an answered turn until the memory is back, or finds it as an earlier attempt kept it: that one stays. A turn
-- that was taken back is kept without words, so that its cards can be withdrawn. With p_unsent, an answer that was
-- made from a message taken back is not kept: its state is open, and it has to be made again.
create or replace function feishu_bot.keep_turn(p_args jsonb, p_unsent boolean) returns jsonb
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_turn constant jsonb := p_args -> 'turn';
  v_kept jsonb;
  v_message text;
begin
  foreach v_message in array messages_of_turn(v_turn) loop
    perform pg_advisory_xact_lock(hashtextextended(v_message, 0));
  end loop;
  select j.args -> 'turn' into v_kept from turn_jobs(p_args ->> 'chat_id') j
  where j.args #>> '{turn,turn_id}' = v_turn ->> 'turn_id';
  if v_kept is not null then
    return v_kept;
  end if;
  if p_unsent and recall_waits(sources_of_turn(v_turn)) then
    return '{"state": "open", "cards": []}';
  end if;
  foreach v_message in array messages_of_turn(v_turn) || sources_of_turn(v_turn) loop
    if recall_waits(array[v_message]) then
      p_args := without_message(p_args, v_message);
    end if;
  end loop;
  perform queue_store(p_args);
  return p_args -> 'turn';
end
$$;

-- Keeps writes beside turns until the memory is back.
create or replace function feishu_bot.keep_writes(p_args jsonb) returns void
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  if not recall_waits(array(select jsonb_array_elements_text(p_args -> 'message_ids'))) then
    perform queue_store(p_args);
  end if;
end
$$;

create or replace function feishu_bot.queue_store(p_args jsonb) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  insert into jobs (task, priority, lock, args, scheduled_at)
  values ('feishu.store', -5, 'store ' || (p_args ->> 'chat_id'), p_args, now() + interval '2 seconds')
$$;

-- Changes a turn that waits, and returns it; null: it is not here, {"busy": true}: a worker is just writing it.
-- p_change: {sent: {chunk, content, message_id}} when a card was delivered, {failed: why} when what is pending will
-- never be, {note: text} to stand before the first card; and {writes, message_ids, people} to be added.
create or replace function feishu_bot.change_turn(p_chat_id text, p_turn_id text, p_change jsonb)
returns jsonb
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_job jobs;
  v_turn jsonb;
  v_is_cancelled boolean;
begin
  select j.* into v_job from jobs j
  where j.id = (select t.id from turn_jobs(p_chat_id) t where t.args #>> '{turn,turn_id}' = p_turn_id)
  for update;
  if v_job.id is null then
    return null;
  elsif v_job.status = 'running' then
    return '{"busy": true}';
  end if;
  v_turn := v_job.args -> 'turn';
  v_is_cancelled := v_turn ->> 'state' = 'cancelled';
  if v_is_cancelled then
    p_change := jsonb_set(p_change, '{sent,content}', '""') - '{note,writes}'::text[];
  end if;
  v_turn := v_turn || jsonb_build_object('cards', (
    select coalesce(jsonb_agg(changed_card(c, p_change) order by c -> 'chunk'), '[]')
    from jsonb_array_elements(v_turn -> 'cards') c));
  if p_change ? 'failed' and v_turn ->> 'state' = 'pending' then
    v_turn := v_turn || jsonb_build_object('state', 'failed', 'error', p_change -> 'failed');
  elsif v_turn ->> 'state' = 'pending' and not v_turn -> 'cards' @> '[{"status": "pending"}]' then
    v_turn := v_turn || '{"state": "sent"}';
  end if;
  update jobs set args = args || jsonb_build_object(
    'turn', v_turn,
    'writes', args -> 'writes' || coalesce(p_change -> 'writes', '[]'),
    'message_ids', args -> 'message_ids' || coalesce(p_change -> 'message_ids', '[]'),
    'people', args -> 'people' || coalesce(p_change -> 'people', '[]'))
  where id = v_job.id;
  return v_turn;
end
$$;

create or replace function feishu_bot.changed_card(p_card jsonb, p_change jsonb) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_card -> 'chunk' = p_change #> '{sent,chunk}'
      then p_card || (p_change -> 'sent') || '{"status": "sent"}'
    when p_card ->> 'status' <> 'pending' then p_card
    when p_change ? 'failed' then p_card || '{"status": "failed"}'
    when p_change ? 'note' and p_card -> 'chunk' = '0'
         and not starts_with(p_card ->> 'content', p_change ->> 'note')
      then p_card || jsonb_build_object('content', (p_change ->> 'note') || (p_card ->> 'content'))
    else p_card end
$$;

-- A message was taken back: no job tells of it any more, also none that failed or runs. With p_keep the memory
-- has not heard of the recall, and a job tells it.
create or replace function feishu_bot.take_back_waiting(p_message_id text, p_chat_id text, p_keep boolean)
returns void
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_cards text[];
begin
  perform pg_advisory_xact_lock(hashtextextended(p_message_id, 0));
  if p_keep then
    perform queue_once(
      'feishu.store', 0, 'recall ' || p_message_id, 'recall ' || p_message_id, jsonb_build_object(
        'recall', jsonb_build_object('p_message_id', p_message_id, 'p_chat_id', p_chat_id)));
  end if;
  v_cards := array(
    select c ->> 'message_id' from jobs j, jsonb_array_elements(j.args #> '{turn,cards}') c
    where j.task = 'feishu.store' and p_message_id = any (messages_of_turn(j.args -> 'turn'))
      and c ->> 'message_id' <> '');
  update jobs set args = without_message(args, p_message_id, v_cards)
  where task = 'feishu.store' and (
    args -> 'message_ids' ?| (v_cards || p_message_id)
    or p_message_id = any (messages_of_turn(args -> 'turn') || sources_of_turn(args -> 'turn')));
  delete from jobs
  where task = 'feishu.store' and status <> 'running' and not args ? 'turn' and args -> 'writes' = '[]';
end
$$;

-- The memory is back: what waits for it may run now. Returns how many jobs.
create or replace function feishu_bot.wake_stores() returns bigint
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_woken bigint;
begin
  update jobs set scheduled_at = null
  where task = 'feishu.store' and status = 'waiting' and scheduled_at > now();
  get diagnostics v_woken = row_count;
  if v_woken > 0 then
    perform tell_workers();
  end if;
  return v_woken;
end
$$;

-- How many turns wait for the memory, since when (ISO 8601) the oldest of anything does, and its age (s); and how
-- many jobs the memory refused.
create or replace function feishu_bot.waiting_stores() returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'turns', count(*) filter (where j.status <> 'failed' and j.args ? 'turn'),
    'since', min(j.queued_at) filter (where j.status <> 'failed'),
    'oldest_s', extract(epoch from now() - min(j.queued_at) filter (where j.status <> 'failed')),
    'refused', count(*) filter (where j.status = 'failed'))
  from jobs j
  where j.task = 'feishu.store'
$$;
