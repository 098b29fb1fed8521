-- Purpose: folds the oldest messages of a long thread into its summary.

-- What a fold starts from: the summary, and the oldest p_limit messages after it that the last
-- p_window do not include, if there are at least p_least of them. A summary from before a fresh
-- start is only named, so that it can be replaced. Of tool calls nothing is given but the ids of
-- notes that were worked with. `rows`: every row whose words are in a message.
create or replace function public.open_fold(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_window integer, p_least integer, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
-- knowing that a thread is very long, the planner would walk through everybody's messages for it
set plan_cache_mode = force_generic_plan
as $$
declare
  v_tenant_key text;
  v_from bigint;
  v_until bigint;
  v_enough bigint;
  v_summary public.agent_summaries;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select c.tenant_key, c.history_from into v_tenant_key, v_from from public.agent_chats c
  where c.id = p_conversation_id and c.user_id = p_user_id;
  select * into v_summary from public.agent_summaries s
  where s.conversation_id = p_conversation_id and s.user_id = p_user_id;
  if v_summary.until_message_id <= v_from then
    v_summary.content := null;
  else
    v_from := greatest(v_from, v_summary.until_message_id);
  end if;

  v_until := bot_private.nth_of_thread(
    v_tenant_key, p_conversation_id, p_user_id, 9223372036854775807, p_window + 1);
  v_enough := bot_private.nth_of_thread(
    v_tenant_key, p_conversation_id, p_user_id, 9223372036854775807, p_window + p_least);

  return jsonb_build_object(
    'id', v_summary.id, 'version', coalesce(v_summary.version, 0),
    'content', coalesce(v_summary.content, ''),
    'verbatim', case when v_summary.content is null then '[]' else v_summary.verbatim end,
    'folded', case when v_summary.content is null then 0 else v_summary.messages end,
    'messages', coalesce((
      select jsonb_agg(to_jsonb(f) order by f.id)
      from (
        select m.id, m.role, coalesce(m.actor_id, '') as actor_id, m.actor_name, m.created_at,
          m.turn_id = any (bot_private.commands_among(array[m.turn_id])) as command,
          m.content || coalesce((
            select string_agg(e'\n\n' || c.content, '' order by c.chunk)
            from public.agent_messages c
            where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
              and c.status <> 'failed'), '') as content,
          (select jsonb_agg(c.id order by c.id) from public.agent_messages c
           where c.turn_id = m.turn_id and c.role = m.role) as rows,
          array(
            select distinct note.id[1]
            from jsonb_array_elements(m.tool_calls) call,
                 regexp_matches(call.value::text, '\mnote_[a-z2-7]{10}\M', 'g') note (id)
            where coalesce(call.value ->> 'name', '') <> all ('{list_notes,search_notes}')
            order by 1) as note_ids
        from public.agent_messages m
        where m.id = any (array(
          select id from (
            (select f.id from public.agent_messages f
             where f.thread = bot_private.thread_number(v_tenant_key, p_conversation_id, p_user_id)
               and f.conversation_id = p_conversation_id and f.user_id = p_user_id
               and f.id > v_from and f.chunk = 0 and f.status <> 'failed' and v_enough > v_from
             order by f.id limit p_limit)
            union all
            (select f.id from public.agent_messages f
             where f.conversation_id = p_conversation_id and f.actor_id = p_user_id
               and f.actor_id <> f.user_id
               and f.id > v_from and f.chunk = 0 and f.status <> 'failed' and v_enough > v_from
             order by f.id limit p_limit)
          ) oldest
          order by id limit p_limit))
      ) f
      where f.id <= v_until), '[]'));
end
$$;

-- Stores what was folded from the rows p_rows (JSON array of ids), if the summary is still the one
-- the fold started from (p_summary_id null: none) and every row is still there. Returns the new
-- version, null when another fold was first or words of it were taken back meanwhile. The rows are
-- locked, so that whoever deletes one of them waits and then finds the summary that goes with it.
create or replace function public.save_summary(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_summary_id bigint, p_expected_version integer,
  p_content text, p_verbatim text, p_rows text, p_messages integer
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint[];
  v_found bigint;
  v_version integer;
  v_since constant timestamptz := bot_private.told_since();
  v_first timestamptz;
begin
  perform bot_private.require_size('p_content', p_content, 262144);
  perform bot_private.require_size('p_verbatim', p_verbatim, 262144);
  perform bot_private.require_size('p_rows', p_rows, 65536);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_rows := array(select jsonb_array_elements_text(p_rows::jsonb)::bigint);
  perform from public.agent_messages m
  where m.id = any (v_rows) and m.conversation_id = p_conversation_id
    and p_user_id in (m.user_id, m.actor_id)
  order by m.id for key share;
  get diagnostics v_found = row_count;
  if v_found = 0 or v_found <> cardinality(v_rows) then
    return jsonb_build_object('version', null);
  end if;

  select min(m.created_at) into v_first from public.agent_messages m where m.id = any (v_rows);
  perform bot_private.tell_nothing();
  if p_summary_id is null then
    insert into public.agent_summaries as s (conversation_id, user_id, tenant_key, chat_id, content,
                                             verbatim, until_message_id, messages, first_said_at)
    select c.id, c.user_id, c.tenant_key, c.chat_id, p_content, p_verbatim::jsonb,
           (select max(r) from unnest(v_rows) r), p_messages, v_first
    from public.agent_chats c
    where c.id = p_conversation_id and c.user_id = p_user_id
    on conflict (tenant_key, conversation_id, user_id) do update
      set version = s.version + 1, content = excluded.content, verbatim = excluded.verbatim,
          until_message_id = excluded.until_message_id, messages = excluded.messages,
          first_said_at = excluded.first_said_at, updated_at = now()
      where s.first_said_at < v_since  -- one that is not told here stands in the way of another
    returning version into v_version;
  else
    update public.agent_summaries s
    set version = s.version + 1, content = p_content, verbatim = p_verbatim::jsonb,
        until_message_id = (select max(r) from unnest(v_rows) r), messages = p_messages,
        updated_at = now()
    where s.id = p_summary_id and s.version = p_expected_version
      and s.conversation_id = p_conversation_id and s.user_id = p_user_id
    returning version into v_version;
  end if;
  return jsonb_build_object('version', v_version);
end
$$;
