-- Purpose: the queue: jobs, and the workers that run them. `functions/_moved_jobs.sql` brings in the
-- jobs of a database whose queue was Procrastinate's.

create table feishu_bot.workers (
  id bigint generated always as identity primary key,
  last_heartbeat timestamptz not null default now(),
  has_session boolean not null default false,  -- it holds an advisory lock while it lives (`begin_work`)
  -- It runs at most so many jobs that are handed to it (`enqueue`); at 0 it takes jobs itself.
  places integer not null default 0,
  -- Where it hears of them. Postgres lets everybody listen to a channel whose name they know, and what
  -- people wrote goes there: only the worker and the owner of this schema know the name.
  channel text not null default ''
);
alter table feishu_bot.workers enable row level security;
revoke all on feishu_bot.workers from public;

create table feishu_bot.jobs (
  id bigint generated always as identity primary key,  -- a card names it: J12
  task text not null,
  args jsonb not null,
  lock text,                                   -- jobs of one lock run in order, one at a time
  unique_key text,                             -- one job at most waits with it
  status text not null default 'waiting' check (status in ('waiting', 'running', 'failed')),
  priority integer not null default 0,         -- the highest goes first
  scheduled_at timestamptz,                    -- not before then
  attempts integer not null default 0,         -- those that are over
  worker_id bigint,                            -- who runs it; 0: nobody that is known
  queued_at timestamptz not null default now(),
  events jsonb not null default '[]',          -- [{type, at}]: what did not go as it should, oldest first
  constraint jobs_worker check ((status = 'running') = (worker_id is not null))
);
create unique index jobs_running_lock_key on feishu_bot.jobs (lock) where status = 'running';
create unique index jobs_waiting_key on feishu_bot.jobs (unique_key) where status = 'waiting';
create index jobs_waiting_idx on feishu_bot.jobs (priority desc, id) where status = 'waiting';
create index jobs_waiting_lock_idx on feishu_bot.jobs (lock, priority desc, id)
  where status = 'waiting';
create index jobs_worker_idx on feishu_bot.jobs (worker_id) where status = 'running';
alter table feishu_bot.jobs enable row level security;
revoke all on feishu_bot.jobs from public;
