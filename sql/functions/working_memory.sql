-- Purpose: what is kept of a conversation and of a person beside the messages, and who changed it.

-- Working memory of both scopes; the person's own only when they speak for themselves.
create or replace function public.get_working_memory(
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

-- RFC 7396: objects merge, null removes a key, anything else replaces.
create or replace function public.merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
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
create or replace function public.merge_working_memory(
  p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_scope text, p_patch text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_patch jsonb;
  v_content jsonb;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  begin
    v_patch := p_patch::jsonb;
  exception when invalid_text_representation or untranslatable_character then
    raise exception 'a working memory patch holds only what JSON and Postgres can keep'
      using errcode = 'PT415';
  end;
  if jsonb_typeof(v_patch) <> 'object' then
    raise exception 'a working memory patch is a JSON object, not %', jsonb_typeof(v_patch)
      using errcode = 'PT415';
  end if;
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can change what is kept about them everywhere'
      using errcode = 'PT403';
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
create or replace function public.clear_working_memory(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can clear what is kept about them everywhere'
      using errcode = 'PT403';
  end if;
  update public.agent_working_memory set content = '{}', updated_at = now()
  where user_id = p_user_id and tenant_key = p_tenant_key and scope = p_scope
    and conversation_id = case when p_scope = 'chat' then p_conversation_id else '' end;
  return '{}'::jsonb;
end
$$;

-- Working memory goes with its conversation, which it may precede.
create or replace function public.drop_working_memory_of_chat() returns trigger
language plpgsql security invoker set search_path = ''
as $$
begin
  delete from public.agent_working_memory
  where conversation_id = old.id and user_id = old.user_id and scope = 'chat';
  return old;
end
$$;
create or replace trigger agent_chats_drop_working_memory after delete on public.agent_chats
  for each row execute function public.drop_working_memory_of_chat();

create or replace function public.record_working_memory_change() returns trigger
language plpgsql security invoker set search_path = ''
as $$
declare
  v_before constant jsonb := case when tg_op = 'UPDATE' then old.content else '{}' end;
  v_was jsonb;
  v_became jsonb;
begin
  select coalesce(jsonb_object_agg(o.key, o.value) filter (where o.key is not null), '{}'),
         coalesce(jsonb_object_agg(n.key, n.value) filter (where n.key is not null), '{}')
  into v_was, v_became
  from jsonb_each(v_before) o full join jsonb_each(new.content) n on o.key = n.key
  where o.value is distinct from n.value;
  if v_was <> '{}' or v_became <> '{}' then
    insert into public.agent_working_memory_history
      (working_memory_id, user_id, tenant_key, actor_id, scope, conversation_id, chat_id, was, became)
    values (new.id, new.user_id, new.tenant_key, coalesce(public.claim('actor'), 'service'),
            new.scope, new.conversation_id, new.chat_id, v_was, v_became);
    delete from public.agent_working_memory_history
    where working_memory_id = new.id and id <= (
      select h.id from public.agent_working_memory_history h
      where h.working_memory_id = new.id order by h.id desc offset 50 limit 1);
  end if;
  return null;
end
$$;
create or replace trigger agent_working_memory_record_insert
  after insert on public.agent_working_memory
  for each row execute function public.record_working_memory_change();
create or replace trigger agent_working_memory_record_update after update of content
  on public.agent_working_memory for each row when (old.content <> new.content)
  execute function public.record_working_memory_change();
