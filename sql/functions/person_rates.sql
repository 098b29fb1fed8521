-- Purpose: requests of persons, counted over all workers. A level fills evenly by what a person may ask
-- for in a minute, at most up to a quarter of it.

create or replace function feishu_bot.requests_at_once(p_per_minute integer) returns integer
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$ select greatest(1, p_per_minute / 4) $$;

-- The level of a row p_at_ms later.
create or replace function feishu_bot.filled_level(
  p_rate feishu_bot.person_rates, p_at_ms bigint, p_per_minute integer
) returns double precision
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select least(feishu_bot.requests_at_once(p_per_minute),
               p_rate.level + greatest(p_at_ms - p_rate.at_ms, 0) * p_per_minute / 60000.0)
$$;

-- Takes what a worker let through: p_spent is a JSON array of {tenant_key, open_id, requests, at_ms},
-- each person once. What somebody asked before they had themselves forgotten is not kept. Returns the levels as
-- {tenant_key, open_id, level, at_ms}.
create or replace function feishu_bot.share_person_rates(p_spent text, p_per_minute integer)
returns jsonb
language sql volatile security invoker set search_path = feishu_bot
as $$
  -- Requests count by the time of their event, which may have waited in the queue for long.
  delete from person_rates where at_ms < extract(epoch from now() - interval '1 day') * 1000;
  with shared as (
    insert into person_rates as r (tenant_key, open_id, level, at_ms)
    select s.tenant_key, s.open_id, requests_at_once(p_per_minute) - s.requests, s.at_ms
    from jsonb_to_recordset(p_spent::jsonb)
      as s (tenant_key text, open_id text, requests integer, at_ms bigint)
    where not exists (
      select from public.forgotten_people f
      where f.mark = public.person_mark(s.open_id) and f.at >= to_timestamp(s.at_ms / 1000.0))
    order by s.tenant_key, s.open_id  -- the order in which every worker locks rows
    on conflict (tenant_key, open_id) do update set
      level = greatest(filled_level(r, excluded.at_ms, p_per_minute)
                       - (requests_at_once(p_per_minute) - excluded.level), -p_per_minute),
      at_ms = greatest(r.at_ms, excluded.at_ms),
      told = r.told and filled_level(r, excluded.at_ms, p_per_minute) < requests_at_once(p_per_minute)
    returning r.tenant_key, r.open_id, r.level, r.at_ms
  )
  select coalesce(jsonb_agg(to_jsonb(s)), '[]') from shared s
$$;

-- Whether this caller is to tell the person that requests are skipped: true once, until the level is
-- full again.
create or replace function feishu_bot.tell_person_rate(p_tenant_key text, p_open_id text)
returns boolean
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  update person_rates set told = true
  where tenant_key = p_tenant_key and open_id = p_open_id and not told;
  return found;
end
$$;

-- Whether nothing is left for the person.
create or replace function feishu_bot.is_over_rate(
  p_tenant_key text, p_open_id text, p_at_ms bigint, p_per_minute integer
) returns boolean
language sql stable security invoker set search_path = feishu_bot
as $$
  select coalesce((
    select filled_level(r, p_at_ms, p_per_minute) < 1 from person_rates r
    where r.tenant_key = p_tenant_key and r.open_id = p_open_id), false)
$$;
