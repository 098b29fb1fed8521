-- Purpose: when the bot was asked while no conversation was on, so that what is said until the answer,
-- with which one begins, is part of it.

alter table public.chat_conversations add column asked_ms bigint;  -- ms since epoch
grant update (asked_ms) on public.chat_conversations to authenticated;
