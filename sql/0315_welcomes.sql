-- Purpose: the first words of the bot in a chat, said once: when it came into a group, and when a
-- person first opened their chat with it.

alter table public.chats
  add column welcome_for_ms bigint,    -- the event that they are for, ms since epoch; null: none yet
  add column welcomed_at timestamptz;  -- when they were said, or found to be needed no more
