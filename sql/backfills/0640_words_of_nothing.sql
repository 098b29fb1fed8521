-- Purpose: words of turns that went while nothing took them along.

delete from bot_private.turn_words w
where w.first_id > 0 and not exists (select from public.agent_messages m where m.id = w.first_id);
