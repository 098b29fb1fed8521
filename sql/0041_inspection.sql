-- Purpose: what operators look at: rows, their sizes and protection, recent turns, the queue's depth.
-- All functions only read, are for service_role only, and answer with jsonb.

-- The last p_limit changes of working memory, latest first. Null filters match all.
create function public.list_working_memory_changes(
  p_user_id text, p_conversation_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id desc), '[]')
  from (
    select * from public.agent_working_memory_history
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by id desc limit p_limit
  ) h
$$;

-- The working memories of a person or a conversation, with their times. Null filters match all.
create function public.list_working_memory(
  p_user_id text, p_conversation_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.updated_at desc), '[]')
  from (
    select * from public.agent_working_memory
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by updated_at desc limit p_limit
  ) w
$$;

-- Rows that hang on nothing, or lack what hangs on them; at most p_limit.
create function public.list_orphans(p_limit integer) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(o)), '[]')
  from (
    select 'agent_messages' as "table", m.id::text as id, 'its turn is missing' as problem
    from public.agent_messages m
    where not exists (select from public.agent_turns t where t.id = m.turn_id)
    union all
    select 'agent_messages', m.id::text, 'its conversation is missing'
    from public.agent_messages m
    where not exists (select from public.agent_chats c
                      where c.id = m.conversation_id and c.user_id = m.user_id)
    union all
    select 'agent_turns', t.id, 'it is ' || t.state || ' but has no answer stored'
    from public.agent_turns t
    where t.state in ('pending', 'sent')
      and not exists (select from public.agent_messages m
                      where m.turn_id = t.id and m.role = 'assistant')
    union all
    select 'agent_working_memory', w.id::text, 'its conversation never had a message'
    from public.agent_working_memory w
    where w.scope = 'chat' and w.updated_at < now() - interval '1 day'
      and not exists (select from public.agent_chats c
                      where c.id = w.conversation_id and c.user_id = w.user_id)
    limit p_limit
  ) o
$$;

-- Which of these messages (JSON array of ids) were recalled: an answer may then have no question.
create function public.recalled_among(p_message_ids text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(r.message_id), '[]')
  from public.recalled_messages r
  where r.message_id in (select jsonb_array_elements_text(p_message_ids::jsonb))
$$;

-- Size, growth and protection of every table of this schema, the largest first.
create function public.list_tables() returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  v_table record;
  v_rows jsonb;
  v_tables jsonb := '[]';
begin
  for v_table in
    select c.oid, c.relname::text as name, c.relrowsecurity as rls,
           pg_catalog.pg_total_relation_size(c.oid) as bytes,
           (select count(*) from pg_catalog.pg_policy y where y.polrelid = c.oid) as policies,
           (select min(a.attname::text) from pg_catalog.pg_attribute a
            where a.attrelid = c.oid and a.attname in ('created_at', 'at', 'asked_at', 'opened_at')) as born
    from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
    order by 4 desc
  loop
    execute format('select jsonb_build_object(''rows'', count(*), ''day'', %s, ''week'', %s)
                    from public.%I', public.born_within(v_table.born, '1 day'),
                   public.born_within(v_table.born, '7 days'), v_table.name) into v_rows;
    v_tables := v_tables || jsonb_build_array(v_rows || jsonb_build_object(
      'table', v_table.name, 'bytes', v_table.bytes, 'rls', v_table.rls,
      'policies', v_table.policies));
  end loop;
  return v_tables;
end
$$;

-- The count of rows whose column p_born is younger than p_age, as an expression.
create function public.born_within(p_born text, p_age text) returns text
language sql immutable security invoker set search_path = ''
as $$
  select case when p_born is null then 'null::bigint'
         else format('count(*) filter (where %I > now() - interval %L)', p_born, p_age) end
$$;

-- What happened in the last p_seconds: turns by state, decisions by reason, how long answers took
-- (s, from the question's arrival in the memory), and how old the oldest unfinished turn is.
create function public.recent_activity(p_seconds integer) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  with turns as (
    select t.state, t.attempts, extract(epoch from t.updated_at - t.created_at) as seconds
    from public.agent_turns t
    where t.created_at > now() - make_interval(secs => p_seconds)
  )
  select jsonb_build_object(
    'turns', (select coalesce(jsonb_object_agg(state, n), '{}')
              from (select state, count(*) as n from turns group by state) s),
    'decisions', (select coalesce(jsonb_object_agg(reason, n), '{}')
                  from (select d.reason, count(*) as n from public.agent_decisions d
                        where d.created_at > now() - make_interval(secs => p_seconds)
                        group by d.reason) s),
    'retries', (select coalesce(sum(attempts - 1), 0) from turns),
    'p50', (select percentile_cont(0.5) within group (order by seconds) from turns
            where state = 'sent'),
    'p95', (select percentile_cont(0.95) within group (order by seconds) from turns
            where state = 'sent'),
    'unfinished', (select count(*) from public.agent_turns t where t.state in ('open', 'pending')),
    'oldest_unfinished_s', (select extract(epoch from now() - min(t.created_at))
                            from public.agent_turns t where t.state in ('open', 'pending')))
$$;

-- Depth of the queue: jobs by state, and the age (s) of the oldest that waits for a worker.
create function feishu_bot.queue_depth() returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'waiting', count(*) filter (where j.status = 'todo'),
    'running', count(*) filter (where j.status = 'doing'),
    'failed', count(*) filter (where j.status = 'failed'),
    'oldest_waiting_s', extract(epoch from now() - min(e.at) filter (where j.status = 'todo')))
  from procrastinate_jobs j
  left join lateral (select min(e.at) as at from procrastinate_events e
                     where e.job_id = j.id and e.type = 'deferred') e on true
$$;

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace in ('public'::regnamespace, 'feishu_bot'::regnamespace) and p.proname in (
      'list_working_memory_changes', 'list_working_memory', 'list_orphans', 'recalled_among',
      'list_tables', 'born_within', 'recent_activity', 'queue_depth')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', f);
    execute format('grant execute on function %s to service_role', f);
  end loop;
end
$$;
