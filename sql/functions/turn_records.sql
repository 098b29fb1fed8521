-- Purpose: records of turns and use of the model, written by a worker beside its turns, some at a time.

-- The fields of a record that list ids: a list of 35 characters each is most of what a record would take.
create or replace function bot_private.lists_ids(p_field text) returns boolean
language sql immutable parallel safe security invoker
return p_field = any ('{history_ids,recent_ids,transcript_ids,recalled}');

-- The same as it was handed over, but for what was left out.
create or replace function bot_private.told_record(p_record jsonb, p_given text[]) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(e.key, case
      when not bot_private.lists_ids(e.key) or jsonb_typeof(e.value) <> 'string' then e.value
      else (
        select jsonb_agg(case
            when starts_with(w.word, '#') then to_jsonb(p_given[substr(w.word, 2)::integer])
            when e.key in ('history_ids', 'recent_ids') then to_jsonb(w.word::bigint)
            else to_jsonb(w.word) end order by w.ordinality)
        from string_to_table(e.value #>> '{}', ' ') with ordinality w (word)) end)
  from jsonb_each(p_record) e
$$;

-- The names of a record's fields. A stored record names them by their places: no place ever changes, a new name
-- goes to the end. At most 62.
create or replace function bot_private.record_fields() returns text[]
language sql immutable parallel safe security invoker
return '{
  bot, model, budget, attempt, outcome, seconds, send_ms, model_ms, recall_ms, memory_load_ms, memory_save_ms, tokens_in,
  tokens_out, tools, specialists, cut_short, limit, recalled, history_ids, recent_ids, transcript_ids, summary, came_along
}'::text[];

-- A record as it is stored: which of those fields it has, as a number of bits, then their values, then an object of its
-- other fields, if it has any. Ids are words of one text, by their place in p_given (bot_private.given_ids) where they
-- stand there; what is null, false or empty is left out.
create or replace function bot_private.short_record(p_record jsonb, p_given text[] default '{}') returns text
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select format('[%s]', concat_ws(',', coalesce(sum(1::bigint << f.place::integer), 0),
    string_agg(f.value::text, ',' order by f.place) filter (where f.place is not null),
    nullif(coalesce(jsonb_object_agg(f.key, f.value) filter (where f.place is null), '{}'), '{}')))
  from (
    select e.key, array_position(bot_private.record_fields(), e.key) as place, case
        when bot_private.lists_ids(e.key) and jsonb_typeof(e.value) = 'array' then (
          select to_jsonb(string_agg(case
              when jsonb_typeof(i.value) = 'number' then i.value #>> '{}'
              else coalesce('#' || array_position(p_given, i.value #>> '{}'), i.value #>> '{}') end, ' '
            order by i.ordinality))
          from jsonb_array_elements(e.value) with ordinality i)
        else e.value end as value
    from jsonb_each(p_record) e
    where e.value not in ('null', 'false', '""', '[]', '{}')) f
$$;

-- The same as it was packed.
create or replace function bot_private.whole_record(p_short text) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  with had as (
    select n.name, row_number() over (order by n.place)::integer as at
    from unnest(bot_private.record_fields()) with ordinality n (name, place)
    where (p_short::jsonb ->> 0)::bigint >> n.place::integer & 1 = 1
  )
  select coalesce(jsonb_object_agg(h.name, p_short::jsonb -> h.at), '{}')
    || coalesce(p_short::jsonb -> (count(*)::integer + 1), '{}')
  from had h
$$;

-- Keeps records (JSON array of {turn_id, day, record}) of turns that are there, and adds their tokens
-- to the day of who asked. A record that comes again, after an attempt that failed, replaces what it
-- has anew. p_keep: whether records are kept, or only counted.
create or replace function feishu_bot.keep_turn_records(p_records jsonb, p_keep boolean) returns void
language plpgsql volatile security invoker set search_path = feishu_bot
set plan_cache_mode = force_generic_plan
as $$
declare
  -- a list: of a query the planner expects so many that it would rather read all turns
  v_turns constant text[] := array(select r ->> 'turn_id' from jsonb_array_elements(p_records) r);
begin
  -- whoever takes a question back or is forgotten meanwhile is waited for: what went leaves nothing
  perform from public.agent_turns t where t.id = any (v_turns) order by t.id for share;
  insert into model_usage as u (day, tenant_key, chat_id, actor_id, turns, tokens_in, tokens_out)
  select (r ->> 'day')::date, t.tenant_key, t.chat_id, t.actor_id, count(*),
         sum(coalesce((r #>> '{record,tokens_in}')::bigint, 0)),
         sum(coalesce((r #>> '{record,tokens_out}')::bigint, 0))
  from jsonb_array_elements(p_records) r join public.agent_turns t on t.id = r ->> 'turn_id'
  where r -> 'record' ? 'tokens_in' and t.id = any (v_turns)
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (day, tenant_key, chat_id, actor_id) do update
    set turns = u.turns + excluded.turns, tokens_in = u.tokens_in + excluded.tokens_in,
        tokens_out = u.tokens_out + excluded.tokens_out;
  if p_keep then
    with there as materialized (
      select t.id, bot_private.given_ids(t.given_messages, t.given) as given from public.agent_turns t
      where t.id = any (v_turns)
        and exists (select from public.agent_messages m where m.turn_id = t.id and m.role = 'user')
    )
    insert into public.agent_turn_records (turn_id, short)
    select distinct on (there.id) there.id, bot_private.short_record(
      case when k.short is null then '{}'
        else bot_private.told_record(bot_private.whole_record(k.short), there.given) end || (r -> 'record'), there.given)
    from jsonb_array_elements(p_records) with ordinality e (r, place)
    join there on there.id = r ->> 'turn_id'
    left join public.agent_turn_records k on k.turn_id = there.id
    where length((r -> 'record')::text) <= 65536
    order by there.id, place desc
    on conflict (turn_id) do update set short = excluded.short, at = now();
  end if;
end
$$;

-- Adds what was used on p_day beside the answers (JSON array of {service, name, calls, tokens_in,
-- tokens_out}, each name once). Returns this month's calls of Feishu's API that count against its
-- limit: names are of the address book, which does not.
create or replace function feishu_bot.keep_calls(p_day date, p_used jsonb) returns bigint
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  insert into calls as c (day, service, name, calls, tokens_in, tokens_out)
  select p_day, u.service, u.name, u.calls, u.tokens_in, u.tokens_out
  from jsonb_to_recordset(p_used)
    u (service text, name text, calls bigint, tokens_in bigint, tokens_out bigint)
  order by u.service, u.name
  on conflict (day, service, name) do update
    set calls = c.calls + excluded.calls, tokens_in = c.tokens_in + excluded.tokens_in,
        tokens_out = c.tokens_out + excluded.tokens_out;
  return (select coalesce(sum(c.calls), 0) from calls c
          where c.day >= date_trunc('month', p_day) and c.day <= p_day
            and c.service = 'feishu' and c.name <> 'names');
end
$$;

-- Deletes records older than p_days; use of the model is kept for thirteen months.
create or replace function feishu_bot.forget_turn_records(p_days integer) returns bigint
language sql volatile security invoker set search_path = feishu_bot
as $$
  with gone as (
    delete from public.agent_turn_records where at < now() - make_interval(days => p_days) returning 1
  ), old as (
    delete from model_usage where day < current_date - 400
  ), old_calls as (
    delete from calls where day < current_date - 400
  )
  select count(*) from gone
$$;

-- Who and which chats have used more tokens on p_day than the limits (0: none) allow:
-- {"people": [open_id, …], "chats": [chat_id, …]}.
create or replace function feishu_bot.usage_exhausted(
  p_day date, p_limit_person bigint, p_limit_chat bigint
) returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'people', (select coalesce(jsonb_agg(actor_id), '[]') from (
      select actor_id from model_usage where day = p_day and p_limit_person > 0
      group by actor_id having sum(tokens_in + tokens_out) >= p_limit_person) p),
    'chats', (select coalesce(jsonb_agg(chat_id), '[]') from (
      select chat_id from model_usage where day = p_day and p_limit_chat > 0
      group by chat_id having sum(tokens_in + tokens_out) >= p_limit_chat) c))
$$;

-- Working memory of a person, and of others in a conversation, as it was at p_at. Only for a
-- transaction that is rolled back.
create or replace function feishu_bot.rewind_working_memory(
  p_user_id text, p_conversation_id text, p_at timestamptz
) returns void
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_change record;
begin
  for v_change in
    select h.working_memory_id, h.was, h.became
    from public.agent_working_memory_history h
    where (h.user_id = p_user_id or h.conversation_id = p_conversation_id) and h.at > p_at
    order by h.id desc
  loop
    update public.agent_working_memory w
    set content = (w.content - array(select jsonb_object_keys(v_change.became))) || v_change.was
    where w.id = v_change.working_memory_id;
  end loop;
end
$$;
