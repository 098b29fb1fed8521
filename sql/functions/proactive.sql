-- Purpose: proactive answers: questions that wait, what the chat knows, and whether the bot may speak.

-- A question heard in a chat that wants proactive answers waits until p_due_ms: once, at most 50 a chat.
create or replace function public.wait_for_answer(
  p_conversation_id text, p_tenant_key text, p_chat_id text, p_root_id text, p_person text,
  p_message_id text, p_content text, p_asked_at text, p_due_ms bigint
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_content', p_content, 4000);
  insert into public.agent_timers
    (id, kind, conversation_id, chat_id, root_id, chat_type, tenant_key, user_id, actor_id, turn_id,
     content, for_people, local_at, zone, due_at)
  select 'pq_' || left(md5(p_chat_id || ' ' || p_message_id), 16), 'proactive', p_conversation_id,
         p_chat_id, p_root_id, 'group', p_tenant_key, p_person, p_person, p_message_id,
         p_content, array[p_person], p_asked_at, 'UTC', to_timestamp(p_due_ms / 1000.0)
  from public.chat_rules r
  where r.chat_id = p_chat_id and r.tenant_key = p_tenant_key and r.proactive
    and not exists (select from public.recalled_messages g where g.message_id = p_message_id)
    and 50 > (select count(*) from public.agent_timers t
              where t.chat_id = p_chat_id and t.kind = 'proactive' and t.state = 'active')
  on conflict do nothing;
end
$$;

-- Whether the bot may answer the question p_message_id unasked: 'claimed' (it is to, and was found to
-- before), 'free', 'no'. With p_claim 'free' becomes 'claimed', one question after the other: p_most a
-- chat since p_since. Never where the chat wants none, is quiet or gone, or the question is.
create or replace function public.may_answer_unasked(
  p_chat_id text, p_tenant_key text, p_message_id text, p_since timestamptz, p_most integer,
  p_claim boolean
) returns text
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_decision public.agent_decisions;
begin
  perform 1 from public.chat_rules r
  where r.chat_id = p_chat_id and r.tenant_key = p_tenant_key and r.proactive for update;
  if not found
     or exists (select from public.chats c where c.chat_id = p_chat_id and c.gone_at is not null)
     or exists (select from public.chat_conversations c
                where c.chat_id = p_chat_id and c.tenant_key = p_tenant_key and c.quiet)
     or exists (select from public.recalled_messages g where g.message_id = p_message_id) then
    return 'no';
  end if;
  select * into v_decision from public.agent_decisions d
  where d.message_id = p_message_id and d.tenant_key = p_tenant_key and d.chat_id = p_chat_id;
  if v_decision.id is null or (v_decision.respond and v_decision.reason <> 'proactive') then
    return 'no';
  elsif v_decision.respond then
    return 'claimed';
  elsif p_most <= (
    select count(*) from public.agent_decisions d
    where d.chat_id = p_chat_id and d.tenant_key = p_tenant_key and d.reason = 'proactive'
      and d.respond and d.created_at >= p_since) then
    return 'no';
  elsif p_claim then
    update public.agent_decisions set respond = true, reason = 'proactive' where id = v_decision.id;
    return 'claimed';
  end if;
  return 'free';
end
$$;

-- The bot had nothing to say to a question after all: what was decided first holds again, and of what
-- nobody said to the bot nothing is kept.
create or replace function public.leave_unanswered(
  p_chat_id text, p_tenant_key text, p_message_id text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from public.agent_turns t
             where t.id = p_message_id and t.chat_id = p_chat_id and t.state = 'failed') then
    perform public.drop_turn(p_message_id, true);
  end if;
  update public.agent_decisions set respond = false, reason = 'no_trigger'
  where chat_id = p_chat_id and tenant_key = p_tenant_key and message_id = p_message_id
    and reason = 'proactive';
end
$$;

-- For the service, on behalf of any member: no more proactive answers in a chat. Returns whether there
-- were any to come.
create or replace function public.stop_proactive(p_chat_id text, p_tenant_key text) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.agent_timers
  where chat_id = p_chat_id and tenant_key = p_tenant_key and kind = 'proactive';
  update public.chat_rules set proactive = false, updated_at = now()
  where chat_id = p_chat_id and tenant_key = p_tenant_key and proactive;
  return found;
end
$$;

-- What people told the bot in this chat that has at least half of what is asked (two terms where there
-- are as many), newest first, [{message_id, content}]; whether it was asked or told is the caller's.
create or replace function public.said_about(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_query text, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_asked text[];
begin
  perform bot_private.require_size('p_query', p_query, 16384);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_asked := bot_private.asked_terms(p_query);
  return (
    select coalesce(jsonb_agg(jsonb_build_object('message_id', f.message_id, 'content', f.content)
                              order by f.id desc), '[]')
    from (
      select m.id, m.message_id, m.content
      from public.agent_messages m
      cross join lateral (
        select length(ts_filter(setweight(bot_private.recall_terms(
                 bot_private.recall_tokens(left(m.content, 4000))), 'A', v_asked), '{a}')) as hits) h
      where cardinality(v_asked) > 0 and m.id = any (bot_private.turns_saying(v_asked))
        and m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.role = 'user'
        and m.status = 'received' and not exists (
          select from public.agent_turns t where t.id = m.turn_id and t.origin in ('reminder', 'digest'))
        and h.hits >= least(2, cardinality(v_asked)) and 2 * h.hits >= cardinality(v_asked)
      order by m.id desc limit least(p_limit, 50)) f);
end
$$;
