-- Purpose: what operators look at: rows, their sizes and protection, recent turns. All functions only
-- read, are for service_role only, and answer with jsonb.

-- Conversations, latest first, with their span and size. Null filters match all.
create or replace function public.list_conversations(
  p_chat_id text, p_conversation_id text, p_user_id text, p_since timestamptz, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(c) order by c.updated_at desc), '[]')
  from (
    select a.id as conversation_id, a.user_id, a.tenant_key, a.chat_id, a.root_id, a.title,
           a.created_at, a.updated_at,
           count(m.id) as messages, min(m.created_at) as first_at, max(m.created_at) as last_at,
           count(m.id) filter (where m.status = 'pending') as pending,
           count(m.id) filter (where m.status = 'failed') as failed
    from (
      select * from public.agent_chats a
      where (p_chat_id is null or a.chat_id = p_chat_id)
        and (p_conversation_id is null or a.id = p_conversation_id)
        and (p_user_id is null or a.user_id = p_user_id)
        and (p_since is null or a.updated_at >= p_since)
      order by a.updated_at desc
      limit p_limit
    ) a
    left join public.agent_messages m on m.conversation_id = a.id and m.user_id = a.user_id
    group by a.id, a.user_id, a.tenant_key, a.chat_id, a.root_id, a.title, a.created_at, a.updated_at
  ) c
$$;

-- The messages of a conversation in order, with ids and states.
create or replace function public.list_messages(
  p_conversation_id text, p_user_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(m) order by m.id), '[]')
  from (
    select id, conversation_id, user_id, turn_id, chat_id, role, chunk, content, actor_id,
           actor_name, message_id, status, error, tool_calls, created_at, updated_at
    from public.agent_messages
    where conversation_id = p_conversation_id and (p_user_id is null or user_id = p_user_id)
    order by id desc
    limit p_limit
  ) m
$$;

-- The working memories of a person or a conversation, with their times. Null filters match all.
create or replace function public.list_working_memory(
  p_user_id text, p_conversation_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.updated_at desc), '[]')
  from (
    select * from public.agent_working_memory
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by updated_at desc limit p_limit
  ) w
$$;

-- The last p_limit changes of working memory, latest first. Null filters match all.
create or replace function public.list_working_memory_changes(
  p_user_id text, p_conversation_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id desc), '[]')
  from (
    select * from public.agent_working_memory_history
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by id desc limit p_limit
  ) h
$$;

-- Decisions, latest first.
create or replace function public.list_decisions(
  p_chat_id text, p_since timestamptz, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(d) order by d.id desc), '[]')
  from (
    select * from public.agent_decisions
    where (p_chat_id is null or chat_id = p_chat_id) and (p_since is null or created_at >= p_since)
    order by id desc
    limit p_limit
  ) d
$$;

-- Rows that hang on nothing, or lack what hangs on them; at most p_limit.
create or replace function public.list_orphans(p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
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
      and exists (select from public.agent_messages m  -- else its words were forgotten
                  where m.turn_id = t.id)
      and not exists (select from public.agent_messages m
                      where m.turn_id = t.id and m.role = 'assistant')
      and not exists (select from public.recalled_messages r where r.message_id = 'answer:' || t.id)
    union all
    select 'agent_working_memory', w.id::text, 'its conversation never had a message'
    from public.agent_working_memory w
    where w.scope = 'chat' and w.updated_at < now() - interval '1 day'
      and not exists (select from public.agent_chats c
                      where c.id = w.conversation_id and c.user_id = w.user_id)
    limit p_limit
  ) o
$$;

-- Whether every row says who may read it: a JSON array of {table, problem, rows, shown}. What has no
-- author is from before that was kept and shown to nobody; everything else listed breaks the rule.
create or replace function public.list_unplaced() returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with found as (
    select 'agent_messages' as "table", 'its author is not known' as problem, false as shown
    from public.agent_messages where actor_id is null
    union all
    select 'agent_working_memory', 'its author is not known', false
    from public.agent_working_memory where actor_id is null and content <> '{}'
    union all
    select 'agent_chats', 'somebody else is its subject though the chat is p2p', true
    from public.agent_chats c
    where c.chat_type = 'p2p' and exists (
      select from public.agent_turns t
      where t.conversation_id = c.id and t.tenant_key = c.tenant_key and t.user_id <> t.actor_id)
    union all
    select 'agent_chats', 'its kind is not the one Feishu gave its chat', true
    from public.agent_chats c join public.chats k using (tenant_key, chat_id)
    where c.chat_type <> k.chat_type
    union all
    select p."table", 'it does not lie in its chat', true
    from (
      select 'agent_turns' as "table", conversation_id, chat_id from public.agent_turns
      union all
      select 'agent_messages', conversation_id, chat_id from public.agent_messages
      union all
      select 'agent_summaries', conversation_id, chat_id from public.agent_summaries
      union all
      select 'agent_notes', conversation_id, chat_id from public.agent_notes
      union all
      select 'agent_working_memory', conversation_id, chat_id from public.agent_working_memory
      where actor_id is not null and conversation_id <> ''
    ) p
    where not starts_with(p.conversation_id || ':', 'feishu:' || p.chat_id || ':')
    union all
    select 'turn_words', 'its place is not that of the message', true
    from bot_private.turn_words w join public.agent_messages m on m.id = w.first_id
    where w.place <> bot_private.recall_number(m.tenant_key, m.chat_id)
       or w.thread <> bot_private.recall_number(m.tenant_key, m.conversation_id)
    union all
    select 'agent_messages', 'its author is not that of the turn', true
    from public.agent_messages m join public.agent_turns t on t.id = m.turn_id
    where (m.user_id, m.chat_id, m.tenant_key) <> (t.user_id, t.chat_id, t.tenant_key)
       or m.actor_id <> t.actor_id
  )
  select coalesce(jsonb_agg(to_jsonb(r) order by r.shown desc, r."table", r.problem), '[]')
  from (select "table", problem, shown, count(*) as rows from found group by 1, 2, 3) r
$$;

-- What became of these turns (JSON array of ids), by id: where they come from, their state, and whether
-- their question or (part of) their answer was taken back.
create or replace function public.turns_checked(p_turn_ids text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(i.id, jsonb_build_object(
    'origin', t.origin, 'state', t.state,
    'question_gone', exists (select from public.recalled_messages r where r.message_id = i.id),
    'answer_gone', exists (select from public.recalled_messages r where r.message_id = 'answer:' || i.id))), '{}')
  from jsonb_array_elements_text(p_turn_ids::jsonb) i (id)
  left join public.agent_turns t on t.id = i.id
$$;

-- Size, growth and protection of every table of this schema, the largest first.
create or replace function public.list_tables() returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
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
create or replace function public.born_within(p_born text, p_age text) returns text
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when p_born is null then 'null::bigint'
         else format('count(*) filter (where %I > now() - interval %L)', p_born, p_age) end
$$;

-- What happened in the last p_seconds: questions by outcome, decisions by reason, how long answers took
-- (s, from the question's arrival in the memory), and how old the oldest unfinished turn is.
create or replace function public.recent_activity(p_seconds integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with turns as (
    select t.outcome, t.attempts, extract(epoch from t.updated_at - t.created_at) as seconds
    from public.agent_turns t
    where t.created_at > now() - make_interval(secs => p_seconds) and bot_private.is_question(t.origin)
  )
  select jsonb_build_object(
    'turns', (select coalesce(jsonb_object_agg(o.outcome, o.n), '{}')
              from (select a.outcome, sum(a.times)::bigint as n
                    from bot_private.outcomes(now() - make_interval(secs => p_seconds)) a group by 1) o),
    'decisions', (select coalesce(jsonb_object_agg(reason, n), '{}')
                  from (select d.reason, count(*) as n from public.agent_decisions d
                        where d.created_at > now() - make_interval(secs => p_seconds)
                        group by d.reason) s),
    'retries', (select coalesce(sum(attempts - 1), 0) from turns),
    'p50', (select percentile_cont(0.5) within group (order by seconds) from turns
            where outcome = 'answered'),
    'p95', (select percentile_cont(0.95) within group (order by seconds) from turns
            where outcome = 'answered'),
    'unfinished', (select count(*) from public.agent_turns t where t.state in ('open', 'pending')),
    'oldest_unfinished_s', (select extract(epoch from now() - min(t.created_at))
                            from public.agent_turns t where t.state in ('open', 'pending')))
$$;

-- What is remembered of a chat, for somebody who looks at it: per subject, newest first, at most so
-- many rows of [whose, what].
create or replace function public.inspect_chat(p_chat_id text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'working_memory', (
      select coalesce(jsonb_agg(jsonb_build_array(w.user_id, w.content::text)
                                order by w.updated_at desc), '[]')
      from public.agent_working_memory w
      where w.content <> '{}' and w.chat_id = p_chat_id),
    'notes', (
      select coalesce(jsonb_agg(jsonb_build_array(
               n.user_id, n.title || coalesce(' #' || nullif(array_to_string(n.tags, ' #'), ''), ''))
               order by n.updated_at desc), '[]')
      from (
        select * from public.agent_notes
        where p_chat_id in (chat_id, shared_chat_id)
        order by updated_at desc limit 20) n),
    'summaries', (
      select coalesce(jsonb_agg(jsonb_build_array(s.user_id, s.content)
                                order by s.updated_at desc), '[]')
      from (
        select * from public.agent_summaries where chat_id = p_chat_id
        order by updated_at desc limit 5) s),
    'decisions', (
      select coalesce(jsonb_agg(jsonb_build_array(
               d.actor_id,
               case when d.respond then 'answered' else 'silent' end || ': ' || d.reason
                 || coalesce(': ' || d.cue, ''), bot_private.words_of(d.message_id, d.chat_id))
               order by d.id desc), '[]')
      from (
        select * from public.agent_decisions where chat_id = p_chat_id
        order by id desc limit 12) d),
    'messages', (
      select coalesce(jsonb_agg(jsonb_build_array(
               m.user_id, case when m.role = 'user' then '← ' else '→ ' end || m.content)
               order by m.id desc), '[]')
      from (
        select * from public.agent_messages where chat_id = p_chat_id
        order by id desc limit 30) m))
$$;
