-- Purpose: what waits for a memory that is away is a job of the queue (`functions/store_jobs.sql`).

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid from pg_proc p
    where p.pronamespace = 'feishu_bot'::regnamespace and p.proname like 'spool\_%'
  loop
    execute format('drop function %s', f);
  end loop;
end
$$;
drop table feishu_bot.spool, feishu_bot.late_writes;
