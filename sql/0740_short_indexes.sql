-- Purpose: an index of which only equality of one text is asked holds a number of four bytes in its place, not the text.

drop index public.agent_turns_conversation_idx;
create index agent_turns_conversation_idx on public.agent_turns using hash (conversation_id);

drop index public.agent_messages_card_idx;
create index agent_messages_card_idx on public.agent_messages using hash (message_id)
  where role = 'assistant' and message_id is not null;

-- A decision is found by its message. One place has one for each, as before: who names the message of another
-- place does not take its decision.
create index agent_decisions_message_idx on public.agent_decisions using hash (message_id);
drop index public.agent_decisions_message_key;
alter table public.agent_decisions add constraint agent_decisions_message_key
  exclude using hash ((tenant_key || ' ' || chat_id || ' ' || message_id) with =);

alter table feishu_bot.inbox drop constraint inbox_pkey;
alter table feishu_bot.inbox alter column key set not null;
alter table feishu_bot.inbox add constraint inbox_key exclude using hash (key with =);
-- rows come by time and go by time
drop index feishu_bot.inbox_received_idx;
create index inbox_received_idx on feishu_bot.inbox using brin (received_at);
