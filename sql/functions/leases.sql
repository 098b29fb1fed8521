-- Purpose: what one process on one machine does at a time. It works through any pooler: nothing is held
-- by a session.

-- Takes or renews a lease for so many seconds from now; false while somebody else holds it.
create or replace function feishu_bot.hold_lease(
  p_name text, p_holder text, p_seconds double precision
) returns boolean
language sql volatile security invoker set search_path = feishu_bot
as $$
  with held as (
    insert into leases as l (name, holder, held_until)
    values (p_name, p_holder, clock_timestamp() + make_interval(secs => p_seconds))
    on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
    where l.holder = excluded.holder or l.held_until < clock_timestamp()
    returning 1
  )
  select exists (select from held)
$$;

-- The next one need not wait until it is over.
create or replace function feishu_bot.release_lease(p_name text, p_holder text) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$ delete from leases where name = p_name and holder = p_holder $$;
