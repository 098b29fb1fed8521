-- Purpose: the order in which a card last showed notes of a conversation as a list.

-- The number in the list shown last; null: it was not in it.
alter table public.agent_note_uses add column shown_place integer check (shown_place > 0);
