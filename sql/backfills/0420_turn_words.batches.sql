-- Purpose: the words of turns that were stored before they were numbers, some hundred turns at a time.

do $$
declare
  v_turn_ids text[];
begin
  for v_turn_ids in
    select array_agg(turn_id) from (
      select turn_id, row_number() over () / 500 as batch from public.agent_turn_terms) t
    group by batch
  loop
    insert into bot_private.turn_words (first_id, place, thread, asked_at, length, words)
    select t.first_id, p.place, bot_private.recall_number(t.tenant_key, t.conversation_id), t.asked_at,
           t.length, bot_private.recall_words(p.place, array(
             -- as often as it stands there
             select l.lexeme from unnest(t.terms) l, unnest(coalesce(l.positions, '{1}'))
             where not starts_with(l.lexeme, '@')))
    from public.agent_turn_terms t join public.agent_messages m on m.id = t.first_id,
      lateral (select bot_private.recall_number(t.tenant_key, t.chat_id) as place offset 0) p
    where t.turn_id = any (v_turn_ids) and t.actor_id is not null
    for key share of m  -- so that it does not go meanwhile
    on conflict (first_id) do nothing;
    commit;
  end loop;
end
$$;
