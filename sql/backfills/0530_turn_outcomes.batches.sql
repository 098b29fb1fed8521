-- Purpose: the outcome of turns that ended before it was written. Of an apology the stored words tell; how a
-- turn was stopped is told by what stands below its answer.

do $$
declare
  v_ids text[];
begin
  execute $define$
    create or replace function pg_temp.intended_by(p_turn_id text, p_shown jsonb) returns jsonb
    language sql stable as $body$
      select case
        when exists (select from public.recalled_messages r where r.message_id = p_turn_id)
          then jsonb_build_object('outcome', 'taken_back')
        when p_shown ->> 'ended' = 'stopped' then jsonb_build_object('outcome', 'stopped')
        else (
          select jsonb_build_object('outcome', 'apologised', 'reason', w.reason)
          from public.agent_messages m
          cross join (values
            ('the model gave an empty answer', 'empty'), ('模型这次给了空的回答', 'empty'),
            ('longer than the model can read', 'too_long'), ('超出了模型一次能读的长度', 'too_long'),
            ('something went wrong with this message', 'given_up'), ('处理这条消息时出了问题', 'given_up'),
            ('its key is refused', 'wrong_key'), ('模型的回答：密钥无效', 'wrong_key'),
            ('its account is used up', 'quota_used_up'), ('模型的回答：账户额度已用完', 'quota_used_up'),
            ('I cannot get an answer from the model', 'unknown'), ('无法得到模型的回答', 'unknown')
          ) w (words, reason)
          where m.turn_id = p_turn_id and m.role = 'assistant' and m.chunk = 0 and length(m.content) < 600
            and (strpos(m.content, 'Sorry, ') > 0 or strpos(m.content, '抱歉，') > 0)
            and strpos(m.content, w.words) > 0
          order by w.reason = 'unknown' limit 1) end
    $body$
  $define$;
  for v_ids in
    select array_agg(n.id) from (
      select t.id, row_number() over (order by t.id) / 500 as batch from public.agent_turns t
      where t.outcome is null and t.state not in ('open', 'pending')) n
    group by n.batch
  loop
    update public.agent_turns t set intended = coalesce(t.intended, pg_temp.intended_by(t.id, t.shown))
    where t.id = any (v_ids) and t.outcome is null and t.state not in ('open', 'pending');
    commit;
  end loop;
  alter table public.agent_turns validate constraint agent_turns_outcome_known;
end
$$;
