-- Purpose: what has arrived from Feishu, by kind, for the operators' checks.

-- Notes that something of a kind has arrived now.
create or replace function feishu_bot.note_arrival(p_kind text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into feishu_bot.arrivals as a (kind) values (p_kind)
  on conflict (kind) do update set last_at = now()
$$;

-- {kind: {first_at, last_at}} of everything that has arrived.
create or replace function feishu_bot.arrivals() returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    jsonb_object_agg(a.kind, jsonb_build_object('first_at', a.first_at, 'last_at', a.last_at)), '{}'
  )
  from feishu_bot.arrivals a
$$;
