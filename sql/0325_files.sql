-- Purpose: an answer may consist of a file or picture beside its cards: a message of its own, stored as one.

-- What is sent: {name, kind, content}; once it is sent, {name, kind}. Null: the row is a card.
alter table public.agent_messages add column file jsonb
  check (file is null or (role = 'assistant' and jsonb_typeof(file) = 'object'));
grant update (file) on public.agent_messages to authenticated;
