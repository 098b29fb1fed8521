-- Purpose: what was taken back in a chat is found by the chat.

create index recalled_messages_chat_idx on public.recalled_messages (chat_id);
drop policy recalled_messages_select on public.recalled_messages;
create policy recalled_messages_select on public.recalled_messages for select to authenticated using (
  chat_id = any (array(select jsonb_object_keys(public.readable_chats()))
                 || (select public.claim('chat_id'))));
