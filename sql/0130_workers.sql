-- Purpose: workers that hold a session with the database, and a quick way to the jobs of a lock.

-- A worker in this table holds an advisory lock for as long as it lives (`begin_work`). One that is
-- not in it is known by its heartbeats alone.
create table feishu_bot.session_workers (
  worker_id bigint primary key
    references feishu_bot.procrastinate_workers (id) on delete cascade
);
alter table feishu_bot.session_workers enable row level security;
revoke all on feishu_bot.session_workers from public;

-- Whether an earlier job of the same conversation waits or runs is asked for every job that is taken.
create index jobs_by_lock_idx on feishu_bot.procrastinate_jobs (lock)
  where status in ('todo', 'doing');

-- Who ends a job is told whether another of its lock waits, and takes it.
drop trigger if exists wake_waiting_after_delete on feishu_bot.procrastinate_jobs;
drop trigger if exists wake_waiting_after_end on feishu_bot.procrastinate_jobs;
drop function if exists feishu_bot.wake_waiting();
