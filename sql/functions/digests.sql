-- Purpose: digests: their material, their schedule, and that they go with what they are made of.

-- What was said in a chat (p_root_id: in that thread) from p_since to p_until, as far as it may be read
-- here: what was said to the bot, its answers, and the transcript of the group. Oldest first, the newest
-- p_limit; `card`: the text is a card's markdown. Commands, and what the bot says by itself, are left out.
create or replace function public.digest_material(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_root_id text, p_since timestamptz, p_until timestamptz, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_since_ms constant bigint := extract(epoch from p_since) * 1000;
  v_until_ms constant bigint := extract(epoch from p_until) * 1000;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    with said as (
      select m.message_id, coalesce(m.actor_name, '') as author, m.actor_id as author_id, m.content,
             (extract(epoch from m.created_at) * 1000)::bigint as at_ms, m.role = 'assistant' as card
      from public.agent_messages m
      where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.message_id is not null
        and m.created_at >= p_since and m.created_at < p_until
        and m.status in ('received', 'sent') and not exists (
          select from public.agent_turns t where t.id = m.turn_id and t.origin in ('reminder', 'digest'))
        and (p_root_id is null or m.conversation_id = 'feishu:' || p_chat_id || ':' || p_root_id)
        and not exists (select from public.agent_messages q
                        where q.turn_id = m.turn_id and q.role = 'user'
                          and left(ltrim(q.content), 1) in ('/', '／'))
    ), heard as (
      select t.message_id, t.author, t.author_id, t.content, t."timestamp" as at_ms, false as card
      from public.chat_transcript t
      where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and not t.ours
        and t.author_id <> ''  -- else Feishu says it, such as who joined
        and t."timestamp" >= v_since_ms and t."timestamp" < v_until_ms
        and (p_root_id is null or p_root_id in (t.root_id, t.message_id))
        and t.message_id not in (select s.message_id from said s)
        and t.content !~ '^\s*(@\S+\s+)*[/／]'
    ), newest as (
      select * from (select * from said union all select * from heard) b
      order by b.at_ms desc, b.message_id limit least(p_limit, 1000)
    )
    select coalesce(jsonb_agg(to_jsonb(n) order by n.at_ms, n.message_id), '[]') from newest n);
end
$$;

-- For the service: the one schedule of a chat, set by p_person, who manages it (else PT403), in place
-- of any other; p_timer as of `set_timer`, null: none. Returns whether there was one.
create or replace function public.set_digest(
  p_conversation_id text, p_tenant_key text, p_chat_id text, p_chat_type text, p_person text,
  p_turn_id text, p_timer_id text, p_timer text
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted constant jsonb := p_timer;
  v_had boolean;
begin
  if not exists (
    select from public.chat_managers m
    where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.open_id = p_person
      and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')) then
    raise exception 'only who manages the chat may change its digest' using errcode = 'PT403';
  end if;
  perform bot_private.require_turn_stands(p_turn_id);
  update public.agent_timers set state = 'cancelled', updated_at = now()
  where chat_id = p_chat_id and tenant_key = p_tenant_key and kind = 'digest' and state = 'active'
    and id <> p_timer_id;
  v_had := found;
  if v_wanted is not null then
    insert into public.agent_timers
      (id, kind, conversation_id, chat_id, root_id, chat_type, tenant_key, user_id, actor_id, turn_id,
       language, for_all, local_at, zone, repeats, due_at)
    values (
      p_timer_id, 'digest', p_conversation_id, p_chat_id, 'main', p_chat_type, p_tenant_key, p_person,
      p_person, p_turn_id, v_wanted ->> 'language', true, v_wanted ->> 'local_at', v_wanted ->> 'zone',
      v_wanted ->> 'repeats', to_timestamp((v_wanted ->> 'due_ms')::bigint / 1000.0))
    on conflict (id) do nothing;
  end if;
  return v_had;
end
$$;

-- The schedule of the chat; null: it has none.
create or replace function public.get_digest(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select bot_private.timer_json(t) from public.agent_timers t
    where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and t.kind = 'digest'
      and t.state = 'active'
    order by t.created_at desc limit 1);
end
$$;

-- What the card of a turn will be made of: p_sources, a JSON array of {message_id, author_id}. False
-- when one of them was taken back meanwhile; then nothing may be made of them.
create or replace function public.keep_digest_sources(
  p_turn_id text, p_chat_id text, p_tenant_key text, p_sources text
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(bot_private.sources_lock());
  insert into public.agent_digest_sources (turn_id, chat_id, tenant_key, message_id, author_id)
  select distinct on (n.id) p_turn_id, p_chat_id, p_tenant_key, n.id, coalesce(s.author_id, '')
  from jsonb_to_recordset(p_sources::jsonb) as s (message_id text, author_id text)
  cross join lateral (
    select s.message_id
    union select unnest(bot_private.noted_sources(jsonb_build_array(s.message_id), 1))) n (id)
  on conflict do nothing;
  return not exists (
    select from jsonb_to_recordset(p_sources::jsonb) as s (message_id text)
    join public.recalled_messages r using (message_id));
end
$$;

-- The digests that are made of these messages, or of what this person wrote, go, and their cards.
create or replace function public.drop_digests_of(p_message_ids text[], p_person text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn record;
begin
  for v_turn in
    select distinct s.turn_id, s.chat_id from public.agent_digest_sources s
    where s.message_id = any (p_message_ids) or (p_person <> '' and s.author_id = p_person)
  loop
    perform public.drop_message(v_turn.turn_id, v_turn.chat_id);
  end loop;
end
$$;
