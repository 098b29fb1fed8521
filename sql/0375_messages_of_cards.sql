-- Purpose: a card is found by its Feishu message; a question by its turn, which has the message's id.

create index agent_messages_card_idx on public.agent_messages (message_id)
  where role = 'assistant' and message_id is not null;
drop index public.agent_messages_message_idx;
