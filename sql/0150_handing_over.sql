-- Purpose: what is known of a worker to whom accepted events are handed at once (`enqueue_event`).

-- places: so many jobs it has in hand at most; 0: it is handed none, but takes what it finds.
-- channel: where it hears of them. The name is known to the worker and to the owner of this schema:
-- Postgres lets everybody listen to a channel whose name they know, and what people wrote goes there.
alter table feishu_bot.session_workers
  add column places integer not null default 0,
  add column channel text not null default '';
