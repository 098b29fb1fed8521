-- Purpose: proactive answers: a chat that wants them, and questions that wait for somebody to answer.
--
-- A question that waits is a timer of its own kind, stored by the service for chats that want it. Its
-- place is the message: it is deleted when its time is over.

alter table public.chat_rules add column proactive boolean not null default false;
grant update (proactive) on public.chat_rules to authenticated;

alter table public.agent_timers drop constraint agent_timers_kind_check;
alter table public.agent_timers add constraint agent_timers_kind_check
  check (kind in ('reminder', 'digest', 'proactive'));
