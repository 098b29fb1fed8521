-- Purpose: figures of the conversations of groups, for operators; counts, no text.

-- Of each chat and day (in the zone p_zone): what was heard and by how many people, how many conversations
-- that was (a pause of p_pause_s ends one; only those in which the bot spoke), how many messages it answered, who mentioned the bot, whom
-- its answers were about, why it answered or kept silent, and how many said on that day that an answer
-- helped or did not. Latest day first, at most p_limit rows.
create or replace function public.measure_conversations(
  p_chat_id text, p_since timestamptz, p_zone text, p_pause_s integer, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with heard as (
    select d.tenant_key, d.chat_id, d.actor_id, d.respond, d.reason, d.created_at, t.user_id, t.outcome,
           (d.created_at at time zone p_zone)::date as day,
           d.created_at - lag(d.created_at) over chat > make_interval(secs => p_pause_s) as after_pause
    from public.agent_decisions d
    left join public.agent_turns t on t.id = d.message_id and d.respond
    where (p_chat_id is null or d.chat_id = p_chat_id)
      and (p_since is null or d.created_at >= p_since)
    window chat as (partition by d.tenant_key, d.chat_id order by d.created_at, d.id)
  ),
  numbered as (
    select h.*, count(*) filter (where after_pause)
                  over (partition by tenant_key, chat_id order by created_at) as number
    from heard h
  ),
  conversations as (
    select tenant_key, chat_id, min(day) as day, count(*) as messages,
           count(distinct actor_id) as people,
           extract(epoch from max(created_at) - min(created_at)) as seconds
    from numbered group by tenant_key, chat_id, number having bool_or(respond)
  ),
  lengths as (
    select tenant_key, chat_id, day, count(*) as conversations,
           percentile_cont(0.5) within group (order by messages) as messages,
           percentile_cont(0.5) within group (order by people) as people,
           percentile_cont(0.5) within group (order by seconds) as seconds
    from conversations group by tenant_key, chat_id, day
  ),
  days as (
    select tenant_key, chat_id, day, count(*) as heard, count(distinct actor_id) as people,
           count(*) filter (where outcome = 'answered') as answered,
           count(*) filter (where reason = 'explicit_trigger') as mentions,
           count(distinct actor_id) filter (where reason = 'explicit_trigger') as mentioned_by,
           count(*) filter (where respond and user_id = actor_id) as about_sender,
           count(*) filter (where respond and user_id <> actor_id) as about_another
    from heard group by tenant_key, chat_id, day
  ),
  feedback as (
    select f.tenant_key, f.chat_id, (f.updated_at at time zone p_zone)::date as day,
           count(*) filter (where f.helpful) as helpful,
           count(*) filter (where not f.helpful) as unhelpful
    from public.agent_feedback f
    where (p_chat_id is null or f.chat_id = p_chat_id)
      and (p_since is null or f.updated_at >= p_since)
      and exists (select from public.agent_decisions d where d.chat_id = f.chat_id)
    group by 1, 2, 3
  ),
  reasons as (
    select tenant_key, chat_id, day, jsonb_object_agg(reason, n order by n desc) filter (where respond)
             as answered_by, jsonb_object_agg(reason, n) filter (where not respond) as silent_by
    from (select tenant_key, chat_id, day, respond, reason, count(*) as n
          from heard group by tenant_key, chat_id, day, respond, reason) r
    group by tenant_key, chat_id, day
  ),
  mentioning as (
    select tenant_key, chat_id, day, jsonb_object_agg(actor_id, n) as by_person
    from (select tenant_key, chat_id, day, actor_id, count(*) as n from heard
          where reason = 'explicit_trigger' group by tenant_key, chat_id, day, actor_id) m
    group by tenant_key, chat_id, day
  ),
  about as (
    select tenant_key, chat_id, day, jsonb_object_agg(user_id, n) as of_person
    from (select tenant_key, chat_id, day, user_id, count(*) as n from heard
          where respond and user_id is not null group by tenant_key, chat_id, day, user_id) a
    group by tenant_key, chat_id, day
  )
  select coalesce(jsonb_agg(to_jsonb(f) order by f.day desc, f.heard desc), '[]')
  from (
    select tenant_key, chat_id, day, coalesce(d.heard, 0) as heard, coalesce(d.people, 0) as people,
           coalesce(d.answered, 0) as answered, coalesce(d.mentions, 0) as mentions,
           coalesce(d.mentioned_by, 0) as mentioned_by, coalesce(d.about_sender, 0) as about_sender,
           coalesce(d.about_another, 0) as about_another,
           coalesce(k.helpful, 0) as helpful, coalesce(k.unhelpful, 0) as unhelpful,
           coalesce(l.conversations, 0) as conversations, l.messages as median_messages,
           l.people as median_people, l.seconds as median_seconds,
           coalesce(r.answered_by, '{}') as answered_by, coalesce(r.silent_by, '{}') as silent_by,
           coalesce(m.by_person, '{}') as mentions_by, coalesce(a.of_person, '{}') as answers_about
    from days d
    full join feedback k using (tenant_key, chat_id, day)
    left join lengths l using (tenant_key, chat_id, day)
    left join reasons r using (tenant_key, chat_id, day)
    left join mentioning m using (tenant_key, chat_id, day)
    left join about a using (tenant_key, chat_id, day)
    order by day desc, 4 desc
    limit p_limit) f
$$;
