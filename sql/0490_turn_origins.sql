-- Purpose: a turn says what it is and what it came from; its id is a key and tells nothing.
-- Before this: stop the workers of the earlier version; events wait in the queue until the new ones start.
--
-- `parent_id` is the turn that it came from, or the timer of a reminder or digest; null where it answers
-- a message as it was written. `cause` is what of the parent led to it: the button, the time of the timer,
-- the number of the retry; '' where the parent leads to one only. The three name a turn whatever its id.
-- `again_of` stays for what its foreign key deletes: it is the parent of an `again`.

alter table public.agent_turns
  add column origin text not null default 'message',
  add column parent_id text,
  add column cause text not null default '';
alter table public.agent_turns add constraint agent_turns_origin_known check (origin in (
  'message', 'button', 'again', 'retry', 'reaction', 'reminder', 'digest', 'unasked', 'offer',
  'private_answer')) not valid;
alter table public.agent_turns add constraint agent_turns_origin_parent
  check ((origin in ('message', 'unasked')) = (parent_id is null)) not valid;
create unique index agent_turns_parent_key on public.agent_turns (parent_id, origin, cause)
  where parent_id is not null;

-- The same of a turn that waits for the memory, {origin, parent_id, cause}; null: a message's.
alter table feishu_bot.spool add column origin jsonb;
grant usage on schema bot_private to bot_console;
