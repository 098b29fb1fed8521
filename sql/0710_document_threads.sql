-- Purpose: a thread of comments in a document is a place of its own, feishu:doc:{file token}:{comment id}.
--
-- It is its own chat, doc:{file token}:{comment id}, so the policies that keep a token to its chat keep it to that
-- thread, and nobody is a member of it. The checks that tie a conversation to its chat take such an id too.

alter table public.agent_chats drop constraint agent_chats_place;
alter table public.agent_chats add constraint agent_chats_place check (
  id = 'feishu:' || chat_id || case when starts_with(chat_id, 'doc:') then '' else ':' || root_id end) not valid;
alter table public.agent_turns drop constraint agent_turns_place;
alter table public.agent_turns add constraint agent_turns_place check (
  starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_messages drop constraint agent_messages_place;
alter table public.agent_messages add constraint agent_messages_place check (
  starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_working_memory drop constraint agent_working_memory_place;
alter table public.agent_working_memory add constraint agent_working_memory_place check (
  conversation_id = '' or starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_working_memory_history drop constraint agent_working_memory_history_place;
alter table public.agent_working_memory_history add constraint agent_working_memory_history_place check (
  conversation_id = '' or starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
