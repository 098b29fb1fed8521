-- Purpose: what an answer is given in a person's own place comes from other chats, and so does the news
-- that it was taken back. Ids only.

drop policy recalled_messages_select on public.recalled_messages;
create policy recalled_messages_select on public.recalled_messages for select to authenticated using (
  chat_id = (select public.claim('chat_id')) or (select public.readable_chats()) ? chat_id);
