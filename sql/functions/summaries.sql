-- Purpose: folds the oldest messages of a long thread into its summary.

-- Whose summary of a conversation a token reads and writes: '' is everybody's there. Where people are kept apart
-- (sharing: person), each has their own.
create or replace function bot_private.summary_of(p_user_id text) returns text
language sql stable security invoker
return case when public.claim('sharing') = 'person' then p_user_id else '' end;

-- The message up to which a summary tells nothing: the last fresh start, of everybody's (p_of: '') the last one that all
-- of them have made since.
create or replace function bot_private.summary_from(
  p_tenant_key text, p_conversation_id text, p_of text
) returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(min(c.history_from), 0) from public.agent_chats c
  where c.tenant_key = p_tenant_key and c.id = p_conversation_id and p_of in ('', c.user_id)
$$;

-- Whether a summary holds words from before a fresh start (0: none).
create or replace function bot_private.is_from_before(p_summary public.agent_summaries, p_from bigint) returns boolean
language sql immutable parallel safe security invoker
return p_from > 0 and p_summary.from_message_id <= p_from;

-- The newest p_most messages up to p_until that are too old for somebody's window, newest first: the last p_window of a
-- person's own are in it, of everybody's (p_of: '') only as many as others_bytes has room for.
create or replace function bot_private.outside_window(
  p_tenant_key text, p_conversation_id text, p_of text, p_until bigint, p_window integer, p_most integer
) returns bigint[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  if p_of <> '' then
    return array(
      select t.id from bot_private.newest_of_thread(
        p_tenant_key, p_conversation_id, p_of, p_until, p_window + p_most) t (id)
      order by t.id desc offset p_window);
  end if;
  return array(
    select n.id from (
      select m.id, row_number() over newest as place,
             sum(octet_length(left(m.content, bot_private.longest_line(m.role))) + 32) over newest as bytes
      from public.agent_messages m
      where m.tenant_key = p_tenant_key and m.conversation_id = p_conversation_id and m.id <= p_until
        and m.chunk = 0 and m.status <> 'failed'
      window newest as (order by m.id desc)
      order by m.id desc limit p_window + p_most) n
    where n.place > p_window or n.bytes > bot_private.others_bytes()
    order by n.id desc limit p_most);
end
$$;

-- What a fold starts from: the summary, and the oldest p_limit messages after it that are outside the window of p_window,
-- if there are at least p_least of them. A summary from before a fresh start is only named, so that it can be replaced.
-- An answer that nobody has seen yet is left out. Of tool calls nothing is given but the ids of notes that were worked
-- with. `rows`: every row whose words are in a message.
create or replace function public.open_fold(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_window integer, p_least integer, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
-- knowing that a thread is very long, the planner would walk through everybody's messages for it
set plan_cache_mode = force_generic_plan
as $$
declare
  v_of constant text := bot_private.summary_of(p_user_id);
  v_tenant_key text;
  v_from bigint;
  v_outside bigint[];
  v_until bigint;
  v_summary public.agent_summaries;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select c.tenant_key into v_tenant_key from public.agent_chats c
  where c.id = p_conversation_id and c.user_id = p_user_id;
  v_from := bot_private.summary_from(v_tenant_key, p_conversation_id, v_of);
  select * into v_summary from public.agent_summaries s
  where s.conversation_id = p_conversation_id and s.user_id = v_of;
  if bot_private.is_from_before(v_summary, v_from) then
    v_summary.content := null;
  else
    v_from := greatest(v_from, v_summary.until_message_id);
  end if;

  v_outside := bot_private.outside_window(
    v_tenant_key, p_conversation_id, v_of, 9223372036854775807, p_window, p_least);
  if v_outside[p_least] > v_from then
    v_until := v_outside[1];
  end if;

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
        where m.conversation_id = p_conversation_id and v_of in ('', m.user_id, m.actor_id)
          and m.id > v_from and m.id <= v_until and m.chunk = 0 and m.status in ('received', 'sent')
        order by m.id limit p_limit
      ) f), '[]'));
end
$$;

-- Locks messages, so that whoever deletes one waits for the end of the transaction; returns how many of them are there.
-- With the owner's rights: a token may read what it may not change, and only what may be changed can be locked. Whoever
-- calls this has just read them.
create or replace function bot_private.hold_messages(p_ids bigint[]) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_held bigint;
begin
  perform from public.agent_messages m where m.id = any (p_ids) order by m.id for key share;
  get diagnostics v_held = row_count;
  return v_held;
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
  v_of constant text := bot_private.summary_of(p_user_id);
  v_rows bigint[];
  v_found bigint;
  v_begins boolean;  -- what it held is from before a fresh start
  v_version integer;
  v_since constant timestamptz := bot_private.told_since();
  v_first timestamptz;
begin
  perform bot_private.require_size('p_content', p_content, 262144);
  perform bot_private.require_size('p_verbatim', p_verbatim, 262144);
  perform bot_private.require_size('p_rows', p_rows, 65536);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_rows := array(select r::bigint from jsonb_array_elements_text(p_rows::jsonb) r order by 1);
  select count(*), min(m.created_at) into v_found, v_first from public.agent_messages m
  where m.id = any (v_rows) and m.conversation_id = p_conversation_id and v_of in ('', m.user_id, m.actor_id);
  if v_found = 0 or v_found <> cardinality(v_rows) or bot_private.hold_messages(v_rows) < v_found then
    return jsonb_build_object('version', null);
  end if;

  v_begins := (
    select bot_private.is_from_before(s, bot_private.summary_from(s.tenant_key, s.conversation_id, v_of))
    from public.agent_summaries s where s.id = p_summary_id);
  perform bot_private.tell_nothing();
  if p_summary_id is null then
    insert into public.agent_summaries as s (conversation_id, user_id, tenant_key, chat_id, content,
                                             verbatim, from_message_id, until_message_id, messages, first_said_at)
    select c.id, v_of, c.tenant_key, c.chat_id, p_content, p_verbatim::jsonb,
           v_rows[1], v_rows[array_upper(v_rows, 1)], p_messages, v_first
    from public.agent_chats c
    where c.id = p_conversation_id and c.user_id = p_user_id
    on conflict (tenant_key, conversation_id, user_id) do update
      set version = s.version + 1, content = excluded.content, verbatim = excluded.verbatim,
          from_message_id = excluded.from_message_id, until_message_id = excluded.until_message_id,
          messages = excluded.messages, first_said_at = excluded.first_said_at, updated_at = now()
      where s.first_said_at < v_since  -- one that is not told here stands in the way of another
    returning version into v_version;
  else
    update public.agent_summaries s
    set version = s.version + 1, content = p_content, verbatim = p_verbatim::jsonb,
        from_message_id = case when v_begins then v_rows[1] else s.from_message_id end,
        until_message_id = v_rows[array_upper(v_rows, 1)], messages = p_messages,
        first_said_at = case when v_begins then v_first else least(s.first_said_at, v_first) end,
        updated_at = now()
    where s.id = p_summary_id and s.version = p_expected_version
      and s.conversation_id = p_conversation_id and s.user_id = v_of
    returning version into v_version;
  end if;
  return jsonb_build_object('version', v_version);
end
$$;
