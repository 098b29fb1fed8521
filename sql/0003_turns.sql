-- Purpose: the memory port; each operation of a turn is one function, hence one round trip.
--
-- Every function takes the identity explicitly and filters by it, so that the service key alone
-- still reads one person's rows; under a user's token the policies check the same thing again.
-- JSON travels as text: PostgREST-compatible servers disagree on jsonb arguments.
-- Errors of our own have codes PTxyz, which PostgREST answers as HTTP status xyz.

-- A missing identity fails closed.
create function public.require_identity(p_user_id text, p_actor_id text, p_conversation_id text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(p_user_id, '') = '' or coalesce(p_actor_id, '') = ''
     or coalesce(p_conversation_id, '') = '' then
    raise exception 'identity missing: user_id, actor_id and conversation_id are required'
      using errcode = '22004';
  end if;
end
$$;

-- Messages that were recalled before their turn began; the turn is then cancelled from the start.
create table public.recalled_messages (
  message_id text primary key,
  chat_id text not null,
  created_at timestamptz not null default now()
);
alter table public.recalled_messages enable row level security;
create policy recalled_messages_select on public.recalled_messages for select to authenticated
  using (chat_id = (select public.claim('chat_id')));
revoke all on public.recalled_messages from anon;
grant select on public.recalled_messages to authenticated;
grant select, insert, update, delete on public.recalled_messages to service_role;

-- The answer of a turn as stored, one element per card.
create function public.turn_reply(p_turn_id text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'chunk', m.chunk, 'content', m.content, 'status', m.status, 'message_id', m.message_id
  ) order by m.chunk), '[]')
  from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant'
$$;

-- Working memory of both scopes; the person's own only when they speak for themselves.
create function public.get_working_memory(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select jsonb_build_object('chat', '{}'::jsonb, 'user', '{}'::jsonb)
           || coalesce(jsonb_object_agg(w.scope, w.content), '{}')
    from public.agent_working_memory w
    where w.user_id = p_user_id and w.tenant_key = p_tenant_key
      and ((w.scope = 'chat' and w.conversation_id = p_conversation_id)
           or (w.scope = 'user' and w.conversation_id = '' and p_user_id = p_actor_id)));
end
$$;

-- The last p_limit messages up to p_until, oldest first; the cards of one answer are one message.
create function public.conversation_history(
  p_conversation_id text, p_user_id text, p_until bigint, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id), '[]')
  from (
    select m.id, m.role, m.actor_id, m.actor_name, m.tool_calls, m.created_at, m.message_id,
           m.content || coalesce((
             select string_agg(e'\n\n' || c.content, '' order by c.chunk)
             from public.agent_messages c
             where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
               and c.status <> 'failed'), '') as content
    from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id
      and m.id <= p_until and m.chunk = 0 and m.status <> 'failed'
    order by m.id desc
    limit p_limit
  ) h
$$;

-- Begins a turn or finds it as it was left. Returns state, attempts, reply (when one is stored)
-- and, unless the turn is over, history (the question last), working_memory and the registry of
-- notes. What tools found for the subject is given back only to the subject.
create function public.open_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_history_limit integer
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
  v_question bigint;
  v_history jsonb;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if exists (select from public.recalled_messages r where r.message_id = p_turn_id) then
    return jsonb_build_object('state', 'cancelled', 'attempts', 0, 'reply', '[]'::jsonb);
  end if;

  insert into public.agent_chats (id, user_id, tenant_key, chat_id, root_id, title)
  values (p_conversation_id, p_user_id, p_tenant_key, p_chat_id, p_root_id, left(p_content, 80))
  on conflict (id, user_id) do update set updated_at = now();

  insert into public.agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id)
  values (p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id)
  on conflict (id) do update
    set attempts = public.agent_turns.attempts + 1, updated_at = now()
    where public.agent_turns.user_id = p_user_id
      and public.agent_turns.conversation_id = p_conversation_id
  returning * into v_turn;
  if v_turn.id is null then
    raise exception 'turn % belongs to another conversation', p_turn_id using errcode = '42501';
  end if;

  if v_turn.attempts = 1 then
    insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                       content, actor_id, actor_name, message_id, status)
    values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user',
            p_content, p_actor_id, p_actor_name, p_turn_id, 'received')
    returning id into v_question;
  else
    select m.id into v_question from public.agent_messages m
    where m.turn_id = p_turn_id and m.role = 'user' and m.chunk = 0;
  end if;

  if v_turn.state <> 'open' then
    return jsonb_build_object('state', v_turn.state, 'attempts', v_turn.attempts,
                              'reply', public.turn_reply(p_turn_id));
  end if;
  v_history := public.conversation_history(p_conversation_id, p_user_id, v_question, p_history_limit);
  if p_user_id <> p_actor_id then
    select jsonb_agg(m.value || '{"tool_calls": []}' order by m.ordinality) into v_history
    from jsonb_array_elements(v_history) with ordinality m;
  end if;
  return jsonb_build_object(
    'state', v_turn.state, 'attempts', v_turn.attempts, 'reply', '[]'::jsonb,
    'history', v_history,
    'working_memory',
      public.get_working_memory(p_conversation_id, p_user_id, p_actor_id, p_tenant_key),
    'registry', public.note_registry(
      p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id));
end
$$;

-- Stores the reply before it is sent. The first writer wins; everyone gets what is stored.
-- p_cards: JSON array of card texts, p_tool_calls: JSON array.
create function public.record_reply(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_cards text, p_tool_calls text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
  for update;
  if v_turn.id is null then
    raise exception 'turn % is not open', p_turn_id using errcode = 'PT404';
  end if;

  if v_turn.state = 'open' then
    insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                       chunk, content, status, tool_calls)
    select v_turn.conversation_id, v_turn.user_id, v_turn.id, v_turn.tenant_key, v_turn.chat_id,
           'assistant', c.ordinality - 1, c.value, 'pending',
           case when c.ordinality = 1 then p_tool_calls::jsonb else '[]' end
    from jsonb_array_elements_text(p_cards::jsonb) with ordinality c;
    update public.agent_turns set state = 'pending', updated_at = now() where id = p_turn_id;
    v_turn.state := 'pending';
  end if;
  return jsonb_build_object('state', v_turn.state, 'reply', public.turn_reply(p_turn_id));
end
$$;

-- A card was delivered: its final text and its Feishu message_id. The turn is sent with its last card.
create function public.mark_sent(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_chunk integer, p_content text, p_message_id text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_state text;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_messages
  set status = 'sent', content = p_content, message_id = p_message_id, error = null,
      updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and chunk = p_chunk;
  if not found then
    raise exception 'turn % has no card %', p_turn_id, p_chunk using errcode = 'PT404';
  end if;
  update public.agent_turns t set updated_at = now(), error = null, state =
    case when exists (select from public.agent_messages m where m.turn_id = t.id
                      and m.role = 'assistant' and m.status = 'pending') then 'pending' else 'sent' end
  where t.id = p_turn_id and t.user_id = p_user_id
  returning t.state into v_state;
  return jsonb_build_object('state', v_state);
end
$$;

-- What is still pending of a reply will never be delivered (p_error: code and reason, no text).
create function public.mark_failed(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_messages set status = 'failed', error = p_error, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and status = 'pending';
  update public.agent_turns set state = 'failed', error = p_error, updated_at = now()
  where id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and state in ('open', 'pending');
  return jsonb_build_object('state', 'failed');
end
$$;

-- RFC 7396: objects merge, null removes a key, anything else replaces.
create function public.merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  v_result jsonb;
  v_key text;
  v_value jsonb;
begin
  if jsonb_typeof(p_patch) <> 'object' then
    return p_patch;
  end if;
  v_result := case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end;
  for v_key, v_value in select * from jsonb_each(p_patch) loop
    if jsonb_typeof(v_value) = 'null' then
      v_result := v_result - v_key;
    else
      v_result := jsonb_set(v_result, array[v_key],
                            public.merge_patch(v_result -> v_key, v_value), true);
    end if;
  end loop;
  return v_result;
end
$$;

-- Merges p_patch (a JSON object) into one scope and returns the whole of it. At most 16 KB.
create function public.merge_working_memory(
  p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_scope text, p_patch text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_patch jsonb := p_patch::jsonb;
  v_content jsonb;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if jsonb_typeof(v_patch) <> 'object' then
    raise exception 'a working memory patch is a JSON object, not %', jsonb_typeof(v_patch)
      using errcode = '22023';
  end if;
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can change what is kept about them everywhere'
      using errcode = '42501';
  end if;

  insert into public.agent_working_memory as w
    (conversation_id, user_id, tenant_key, chat_id, scope, content)
  values (case when p_scope = 'chat' then p_conversation_id else '' end, p_user_id, p_tenant_key,
          case when p_scope = 'chat' then p_chat_id else '' end, p_scope,
          public.merge_patch('{}', v_patch))
  on conflict (user_id, tenant_key, scope, conversation_id) do update
    set content = public.merge_patch(w.content, v_patch), updated_at = now()
  returning content into v_content;

  if octet_length(v_content::text) > 16384 then
    raise exception 'working memory would hold % bytes, the limit is 16384: remove keys first',
      octet_length(v_content::text) using errcode = 'PT413';
  end if;
  return v_content;
end
$$;

-- Empties one scope of working memory; the history stays.
create function public.clear_working_memory(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can clear what is kept about them everywhere'
      using errcode = '42501';
  end if;
  update public.agent_working_memory set content = '{}', updated_at = now()
  where user_id = p_user_id and tenant_key = p_tenant_key and scope = p_scope
    and conversation_id = case when p_scope = 'chat' then p_conversation_id else '' end;
  return '{}'::jsonb;
end
$$;

-- For operators: conversations, latest first, with their span and size. Null filters match all.
create function public.list_conversations(
  p_chat_id text, p_conversation_id text, p_user_id text, p_since timestamptz, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
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

-- For operators: the messages of a conversation in order, with ids and states.
create function public.list_messages(
  p_conversation_id text, p_user_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
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

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname in (
      'require_identity', 'turn_reply', 'get_working_memory', 'conversation_history', 'open_turn',
      'record_reply', 'mark_sent', 'mark_failed', 'merge_patch', 'merge_working_memory',
      'clear_working_memory', 'list_conversations', 'list_messages')
  loop
    execute format('revoke execute on function %s from public, anon', f);
    execute format('grant execute on function %s to service_role', f);
    if f::text !~ '(list_conversations|list_messages)' then
      execute format('grant execute on function %s to authenticated', f);
    else
      execute format('revoke execute on function %s from authenticated', f);
    end if;
  end loop;
end
$$;
