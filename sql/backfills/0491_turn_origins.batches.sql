-- Purpose: the origin of turns from before it was written, as their ids tell it. These ids stay.
--
-- A button that is gone is known by what was noted when it went; where nothing was, it is the parent itself.

do $$
declare
  v_derived constant text := '^(click|reaction|timer|private|offer):|~';
  v_turns text[];
begin
  execute $define$
    create or replace function pg_temp.origin_of(p_id text)
    returns table (origin text, parent_id text, cause text)
    language sql as $body$
      with said as (
        select regexp_replace(p_id, '~again[0-9]+$', '') as before_again,
               substring(p_id from '~again([0-9]{1,6})$')::integer as number,
               split_part(substr(p_id, 7), '~', 1) as button_id,
               split_part(p_id, ':', 2) as timer_id
      )
      select 'again', coalesce((
               select s.before_again || '~again' || n from generate_series(1, least(s.number - 1, 100)) n
               where exists (select from public.agent_turns t where t.id = s.before_again || '~again' || n)
               order by n desc limit 1), s.before_again), ''
      from said s where s.number is not null
      union all
      select case when b.kind = 'show' or b.id is null and exists (
               select from public.agent_turns t where t.id = p_id and t.drawn_on <> '{}')
             then 'private_answer' else 'button' end,
             coalesce(b.turn_id, (
               select substr(d.message_id, 8) from public.agent_digest_sources d
               where d.turn_id = p_id and starts_with(d.message_id, 'answer:') limit 1), s.button_id),
             coalesce(nullif(split_part(p_id, '~', 2), ''), s.button_id)
      from said s left join public.agent_buttons b on b.id = s.button_id
      where starts_with(p_id, 'click:') and s.number is null
      union all
      select 'reaction', coalesce((
               select m.turn_id from public.agent_messages m
               where m.message_id = substr(p_id, 10) and m.role = 'assistant' limit 1), substr(p_id, 10)), ''
      where starts_with(p_id, 'reaction:') and p_id !~ '~again[0-9]+$'
      union all
      select case when exists (select from public.agent_timers r where r.id = s.timer_id and r.kind = 'digest')
               or exists (select from public.agent_digest_sources d
                          where d.turn_id = p_id and not starts_with(d.message_id, 'answer:'))
             then 'digest' else 'reminder' end, s.timer_id, split_part(p_id, ':', 3)
      from said s where starts_with(p_id, 'timer:') and s.number is null
      union all
      select 'private_answer', substr(p_id, 9), '' where starts_with(p_id, 'private:')
        and p_id !~ '~again[0-9]+$'
      union all
      select 'offer', substr(p_id, 7), '' where starts_with(p_id, 'offer:')
      union all
      select 'retry', regexp_replace(p_id, '~[0-9]+$', ''), substring(p_id from '~([0-9]+)$')
      where p_id ~ '~[0-9]+$' and p_id !~ '^(click|reaction|timer|private|offer):'
    $body$
  $define$;
  commit;
  for v_turns in
    select array_agg(n.id) from (
      select t.id, row_number() over (order by t.id) / 500 as batch from public.agent_turns t
      where t.id ~ v_derived and t.parent_id is null) n
    group by n.batch
  loop
    update public.agent_turns t set origin = o.origin, parent_id = o.parent_id, cause = o.cause
    from unnest(v_turns) v (id) cross join lateral pg_temp.origin_of(v.id) o
    where t.id = v.id;
    commit;
  end loop;
  update public.agent_turns t set origin = 'unasked' from public.agent_decisions d
  where d.reason = 'proactive' and d.respond and d.message_id = t.id and d.chat_id = t.chat_id
    and d.tenant_key = t.tenant_key and t.origin = 'message';
  alter table public.agent_turns validate constraint agent_turns_origin_known;
  alter table public.agent_turns validate constraint agent_turns_origin_parent;
end
$$;
