-- Purpose: who stores that a card was sent tells its buttons where they stand.

drop trigger if exists agent_messages_place_buttons on public.agent_messages;
