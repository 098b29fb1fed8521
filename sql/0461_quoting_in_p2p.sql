-- Purpose: p2p conversations that earlier versions began for every quoted message. Their history belongs to
-- the main conversation, which reads them along (`bot_private.read_along`).
--
-- Some of them may be threads, which no row tells apart: those stay conversations of their own besides.

alter table public.agent_chats add column from_quote boolean not null default false;
update public.agent_chats set from_quote = true
where chat_type = 'p2p' and root_id <> 'main' and chat_id <> user_id;
create index agent_chats_from_quote_idx on public.agent_chats (chat_id) where from_quote;
grant select (from_quote) on public.agent_chats to authenticated;
