-- Purpose: forget, export, keep no longer than agreed.
--
-- Which tables hold something of a person is read from the catalogue, by the names of their columns:
-- a table that comes later is forgotten and exported without being named here.

-- Columns of schema p_schema that say whose row it is (user_id, open_id) or who wrote it.
create or replace function public.person_columns(p_schema text) returns table
  (table_name text, column_name text, has_tenant boolean)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select c.relname::text, a.attname::text,
         exists (select from pg_catalog.pg_attribute t
                 where t.attrelid = c.oid and t.attname = 'tenant_key' and not t.attisdropped)
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and not a.attisdropped
  where n.nspname = p_schema and c.relkind in ('r', 'p') and not c.relispartition
    and a.attname = any ('{user_id,open_id,actor_id,author_id,sender_id,operator_id,owner_id}')
  order by 1, 2
$$;

-- The condition on a row of p_table to be of person $1 in tenant $2 (null: in any), or null.
create or replace function public.person_condition(p_schema text, p_table text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select '(' || string_agg(format('%I = $1', p.column_name), ' or ') || ')'
         || case when bool_or(p.has_tenant) then ' and ($2 is null or tenant_key = $2)' else '' end
  from public.person_columns(p_schema) p
  where p.table_name = p_table
$$;

create or replace function public.require_person(p_user_id text) returns void
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(p_user_id, '') = '' then
    raise exception 'identity missing: user_id is required' using errcode = 'PT428';
  end if;
end
$$;

-- What stands in the transcript of a group of these turns: the questions and the cards sent.
create or replace function public.forget_in_transcript(p_turn_ids text[]) returns integer
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from public.chat_transcript t
    where t.message_id = any (p_turn_ids)
       or t.message_id in (select m.message_id from public.agent_messages m
                           where m.turn_id = any (p_turn_ids) and m.message_id is not null)
    returning 1
  )
  select count(*)::integer from gone
$$;

-- Deletes every row of a person, and what they wrote in the memory of others. Cards that list what was kept,
-- or offer something, are withdrawn. Of the decisions on their messages the reason stays, without the person. p_tenant_key null: in every tenant.
-- The receipt is committed to with p_salt and names nobody. Returns rows per table as they were found.
create or replace function public.forget_person(
  p_user_id text, p_tenant_key text, p_salt text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_counts jsonb;
  v_table text;
  v_count bigint;
  v_before constant jsonb := bot_private.rows_written();
  v_turns constant text[] := array(
    select t.id from public.agent_turns t
    where (t.user_id = p_user_id or t.actor_id = p_user_id)
      and (p_tenant_key is null or t.tenant_key = p_tenant_key));
  v_texts constant text[] := array(
    select m.content from public.agent_messages m
    where m.role = 'user' and m.actor_id = p_user_id and (p_tenant_key is null or m.tenant_key = p_tenant_key)
    order by m.id desc limit 200);
begin
  perform public.require_person(p_user_id);
  perform pg_advisory_xact_lock(bot_private.names_lock());
  v_counts := public.count_person(p_user_id, p_tenant_key);
  perform bot_private.pass_on_sources(v_turns);
  perform public.drop_digests_of('{}', p_user_id);
  perform bot_private.withdraw_kept(t.id) from public.agent_turns t
  where t.user_id = p_user_id and t.kept_cards <> '{}'
    and (p_tenant_key is null or t.tenant_key = p_tenant_key);
  delete from public.chat_transcript
  where author_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);
  v_count := public.forget_in_transcript(v_turns);
  v_counts := jsonb_set(v_counts, '{chat_transcript}',
                        to_jsonb((v_counts ->> 'chat_transcript')::bigint + v_count));

  perform public.stop_timers_for(c.chat_id, array[p_user_id])
  from (select distinct t.chat_id from public.agent_timers t
        where p_user_id = any (t.for_people) and t.state = 'active'
          and (p_tenant_key is null or t.tenant_key = p_tenant_key)) c;
  update public.agent_timers t set for_people = array_remove(t.for_people, p_user_id)
  where p_user_id = any (t.for_people) and (p_tenant_key is null or t.tenant_key = p_tenant_key);

  update public.chat_imports set started_by = ''
  where started_by = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);
  delete from bot_private.import_members where open_id = p_user_id;
  delete from bot_private.told_documents
  where actor_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);
  -- whose imported messages an answer used stands below it by name
  update public.agent_turns t set shown = t.shown - 'imported'
  where t.shown ? 'imported' and exists (
    select from jsonb_array_elements(t.shown -> 'imported') e
    where e.value ->> 1 in (select left(m.author_name, 40) from public.imported_messages m
                            where m.author_id = p_user_id));
  update public.agent_decisions set actor_id = '', message_id = 'forgotten:' || id
  where actor_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);

  for v_table in  -- the cards of their p2p chats are withdrawn while these are known
    select p.table_name from public.person_columns('public') p
    group by p.table_name order by p.table_name = 'p2p_chats'
  loop
    execute format('delete from public.%I where %s', v_table,
                   public.person_condition('public', v_table))
      using p_user_id, p_tenant_key;
  end loop;
  -- a summary that went with a turn of theirs stands there by their name (`thread_source`)
  delete from public.recalled_messages
  where message_id ^@ 'answer:thread:' and split_part(message_id, ':', -1) = p_user_id;
  delete from public.forgotten_people where at < now() - interval '40 days';
  update public.agent_receipts set reader_id = null, salt = null
  where reader_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);
  if p_user_id !~ '^ou_probe_' then  -- those the doctor made up leave nothing
    insert into public.forgotten_people (mark) values (public.person_mark(p_user_id))
    on conflict (mark) do update set at = now();
    perform bot_private.draft_receipt('forget me', '{}', v_texts, v_before, null, '', p_salt);
  end if;
  return v_counts;
end
$$;

-- What stands for somebody who is forgotten.
create or replace function public.person_mark(p_user_id text) returns text
language sql stable security invoker
return encode(sha256(convert_to('forgotten ' || p_user_id, 'UTF8')), 'hex');

-- Whether a message must not be told any more: it was taken back, or its author had the bot forget them since p_at_ms.
-- With the owner's rights: a turn's token sees nobody else's marks.
create or replace function bot_private.is_gone(p_message_id text, p_author_id text, p_at_ms bigint)
returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select exists (
      select from public.recalled_messages r
      where r.message_id in (p_message_id, 'answer:' || p_message_id))
    or exists (
      select from public.forgotten_people f
      where f.mark = public.person_mark(p_author_id) and f.at >= to_timestamp(p_at_ms / 1000.0))
$$;

-- Of messages that Feishu lists (p_messages, JSON array of {message_id, author_id, at_ms}) the ids of those that must
-- not be told.
create or replace function public.messages_gone(p_messages text) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_messages', p_messages, 262144);
  return (
    select coalesce(jsonb_agg(e.message_id), '[]')
    from jsonb_to_recordset(p_messages::jsonb) as e (message_id text, author_id text, at_ms bigint)
    where bot_private.is_gone(e.message_id, e.author_id, e.at_ms));
end
$$;

-- Rows per table that are of a person or by them.
create or replace function public.count_person(p_user_id text, p_tenant_key text) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_counts jsonb := '{}';
  v_table text;
  v_count bigint;
begin
  perform public.require_person(p_user_id);
  for v_table in select distinct p.table_name from public.person_columns('public') p loop
    execute format('select count(*) from public.%I where %s', v_table,
                   public.person_condition('public', v_table))
      into v_count using p_user_id, p_tenant_key;
    v_counts := v_counts || jsonb_build_object(v_table, v_count);
  end loop;
  return v_counts;
end
$$;

-- One page of what is stored of a person in one table, as rows; p_after is the last row's place
-- (null: from the start). Returns rows and the place to go on from, null at the end.
-- Changes to the memory of others are theirs: of those only the person's own words are given.
create or replace function public.export_person(
  p_user_id text, p_tenant_key text, p_table text, p_after text, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_condition constant text := public.person_condition('public', p_table);
  v_page jsonb;
begin
  perform public.require_person(p_user_id);
  if v_condition is null then
    raise exception 'table % holds nothing of a person', p_table using errcode = 'PT400';
  end if;
  -- ctid orders any table, with or without a key, and needs no index
  execute format($page$
    with page as materialized (
      select r.ctid as place, to_jsonb(r) - case
        when %L = 'agent_working_memory_history' and to_jsonb(r) ->> 'user_id' <> $1
        then 'was' else '' end as content
      from public.%I r where %s and ($3 is null or r.ctid > $3::tid)
      order by r.ctid limit $4
    )
    select jsonb_build_object(
      'rows', coalesce(jsonb_agg(content order by place), '[]'),
      'next', case when count(*) = $4 then max(place)::text end)
    from page
  $page$, p_table, p_table, v_condition)
    into v_page using p_user_id, p_tenant_key, p_after, p_limit;
  return v_page;
end
$$;

-- Deletes a conversation with everything that hangs on it: of one person, or (null) of everybody.
-- Notes that were made in it go too unless p_keep_notes. Returns rows per table.
create or replace function public.forget_conversation(
  p_conversation_id text, p_user_id text, p_keep_notes boolean
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_counts jsonb := '{}';
  v_table text;
  v_count bigint;
  v_before constant jsonb := bot_private.rows_written();
  v_turns constant text[] := array(
    select t.id from public.agent_turns t
    where t.conversation_id = p_conversation_id and (p_user_id is null or t.user_id = p_user_id));
  v_tenant_key constant text := (
    select max(c.tenant_key) from public.agent_chats c where c.id = p_conversation_id);
  v_texts constant text[] := array(
    select m.content from public.agent_messages m
    where m.turn_id = any (v_turns) and m.role = 'user' order by m.id desc limit 200);
begin
  if coalesce(p_conversation_id, '') = '' then
    raise exception 'identity missing: conversation_id is required' using errcode = 'PT428';
  end if;
  perform bot_private.pass_on_sources(v_turns);
  perform public.drop_digests_of(array(
    select m.message_id from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.message_id is not null
      and (p_user_id is null or m.user_id = p_user_id)), '');
  v_count := public.forget_in_transcript(v_turns);
  if p_user_id is null then
    v_count := v_count + public.forget_thread_transcript(p_conversation_id);
  end if;
  v_counts := jsonb_build_object('chat_transcript', v_count);

  for v_table in
    select c.relname::text
    from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and not (p_keep_notes and c.relname = 'agent_notes')
      and 2 = (select count(*) from pg_catalog.pg_attribute a
               where a.attrelid = c.oid and a.attname in ('conversation_id', 'user_id'))
    order by 1
  loop
    execute format('delete from public.%I where conversation_id = $1
                    and ($2 is null or user_id = $2)', v_table)
      using p_conversation_id, p_user_id;
    get diagnostics v_count = row_count;
    v_counts := v_counts || jsonb_build_object(v_table, v_count);
  end loop;
  delete from public.agent_chats
  where id = p_conversation_id and (p_user_id is null or user_id = p_user_id);
  get diagnostics v_count = row_count;
  perform bot_private.draft_receipt(
    'conversation', v_turns, v_texts, v_before, p_user_id, v_tenant_key, null);
  return v_counts || jsonb_build_object('agent_chats', v_count);
end
$$;

-- The transcript of a thread; of main: what was said outside threads.
create or replace function public.forget_thread_transcript(p_conversation_id text) returns integer
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from public.chat_transcript t
    where t.chat_id = bot_private.chat_of(p_conversation_id)
      and case bot_private.root_of(p_conversation_id)
            when 'main' then t.root_id is null
            else bot_private.root_of(p_conversation_id) in (t.root_id, t.message_id) end
    returning 1
  )
  select count(*)::integer from gone
$$;

-- The words of a message that goes are also in what was made of it: the title of the conversation,
-- and its summary. Both are made again from what is left.
create or replace function public.drop_words_of_messages() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  update public.agent_chats c set title = ''
  from gone g
  where g.role = 'user' and c.id = g.conversation_id and c.user_id = g.user_id
    and c.tenant_key = g.tenant_key;
  if exists (select from pg_catalog.pg_attribute a
             where a.attrelid = to_regclass('public.agent_summaries')
               and a.attname = 'until_message_id') then
    execute 'delete from public.agent_summaries s using gone g
             where s.conversation_id = g.conversation_id and s.tenant_key = g.tenant_key
               and s.user_id in ('''', g.user_id, g.actor_id) and s.until_message_id >= g.id';
  end if;
  return null;
end
$$;

-- Deletes up to p_batch rows per table of what is older than p_days, and returns how many of each;
-- call again until nothing is left. What people keep on purpose stays until they or an operator
-- delete it: notes, and working memory of a person.
create or replace function public.apply_retention(p_days integer, p_batch integer) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_before constant timestamptz := now() - make_interval(days => p_days);
  v_before_ms constant bigint := extract(epoch from v_before) * 1000;
  v_old record;
  v_count bigint;
  v_counts jsonb := '{}';
  v_turns text[];
  v_written constant jsonb := bot_private.rows_written();
begin
  if p_days < 1 or p_batch < 1 then
    raise exception 'days and batch are at least 1' using errcode = 'PT400';
  end if;
  v_turns := array(
    select t.id from public.agent_turns t where t.created_at < v_before limit p_batch for update skip locked);
  perform bot_private.keep_question_terms(v_turns);
  for v_old in
    select * from (values
      ('agent_turns', format('id = any (%L)', v_turns)),
      ('agent_chats', format('updated_at < %L and not exists (select from public.agent_turns t
        where t.conversation_id = r.id and t.user_id = r.user_id
          and t.tenant_key = r.tenant_key)', v_before)),
      ('agent_decisions', format('created_at < %L', v_before)),
      ('agent_working_memory_history', format('at < %L', v_before)),
      ('chat_transcript', format('"timestamp" < %s', v_before_ms)),
      ('imported_messages', format('id < %s', -9223372036854775807 + (v_before_ms << 20))),  -- ids go by time
      ('chat_conversations', format('updated_at < %L and not quiet and not exists (select
        from public.chat_transcript t where t.chat_id = r.chat_id
          and t.tenant_key = r.tenant_key)', v_before)),
      ('recalled_messages', format('created_at < %L', v_before)),
      ('agent_withdrawals', format('created_at < %L', v_before)),
      ('agent_timers', format('updated_at < %L and state <> ''active''', v_before)),
      -- of a chat that the bot is no longer in, once nothing tells of it
      ('chat_members', format('exists (select from public.chats c
        where c.chat_id = r.chat_id and c.gone_at < %L)', v_before)),
      ('chats', format('gone_at < %L and not exists (select from public.agent_chats a
          where a.chat_id = r.chat_id and a.tenant_key = r.tenant_key)
        and not exists (select from public.agent_notes n
          where n.chat_id = r.chat_id and n.tenant_key = r.tenant_key)
        and not exists (select from public.chat_members m
          where m.chat_id = r.chat_id)', v_before))
    ) as old (table_name, condition)
  loop
    execute format('delete from public.%I where ctid = any (array(
                      select r.ctid from public.%I r where %s limit $1 for update skip locked))',
                   v_old.table_name, v_old.table_name, v_old.condition)
      using p_batch;
    get diagnostics v_count = row_count;
    v_counts := v_counts || jsonb_build_object(v_old.table_name, v_count);
  end loop;
  perform bot_private.draft_receipt('retention', '{}', '{}', v_written, null, '', null);
  return v_counts;
end
$$;
