-- Purpose: answers of earlier versions know their sources as new ones do: cards by their turns, the messages that
-- the facts of the person came from, and the thread whose summary they were given, as far as rows tell.

do $$
declare
  v_turns text[];
begin
  for v_turns in
    select array_agg(n.id) from (
      select t.id, row_number() over (order by t.id) / 500 as batch from public.agent_turns t
      where t.given <> '{}' or t.read_messages <> '{}') n
    group by n.batch
  loop
    update public.agent_turns t
    set given = (array(
          select coalesce('answer:' || m.turn_id, g)
          from unnest(t.given) g
          left join public.agent_messages m on m.message_id = g and m.role = 'assistant'
          union
          select e.value ->> 'turn'
          from public.agent_working_memory w cross join jsonb_each(w.sources) e
          where w.tenant_key = t.tenant_key and w.user_id = t.user_id
            and (w.scope = 'user' or w.conversation_id = t.conversation_id)
            and e.value ->> 'turn' <> t.id and (e.value ->> 'at')::timestamptz <= t.created_at
          union
          select bot_private.thread_source(s.conversation_id, s.user_id) from public.agent_summaries s
          where s.conversation_id = t.conversation_id and s.user_id = t.user_id
            and s.tenant_key = t.tenant_key and s.created_at <= t.created_at))[:200],
        read_messages = (t.read_messages || array(
          select 'answer:' || m.turn_id from public.agent_messages m
          where m.message_id = any (t.read_messages) and m.role = 'assistant'
            and 'answer:' || m.turn_id <> all (t.read_messages)))[:50]
    where t.id = any (v_turns);
    commit;
  end loop;
  insert into public.agent_digest_sources (turn_id, chat_id, tenant_key, message_id, author_id)
  select s.turn_id, s.chat_id, s.tenant_key, 'answer:' || m.turn_id, s.author_id
  from public.agent_digest_sources s
  join public.agent_messages m on m.message_id = s.message_id and m.role = 'assistant'
  on conflict do nothing;
end
$$;
