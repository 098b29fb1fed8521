-- Purpose: the keys of before the tenant was part of them, dropped once no function relies on them; and
-- the author in what was derived from messages meanwhile.

update public.agent_turn_terms k set actor_id = t.actor_id
from public.agent_turns t where t.id = k.turn_id and k.actor_id is null and t.actor_id <> '';
update public.agent_messages m set actor_id = t.actor_id
from public.agent_turns t
where t.id = m.turn_id and m.actor_id is null and t.actor_id <> '';
delete from public.agent_note_uses u
where owner_id is null and not exists (select from public.agent_notes n where n.id = u.note_id);
update public.agent_note_uses u set owner_id = n.user_id
from public.agent_notes n where n.id = u.note_id and u.owner_id is null;

alter table public.agent_turns drop constraint agent_turns_conversation_id_user_id_fkey;
alter table public.agent_messages drop constraint agent_messages_conversation_id_user_id_fkey;
alter table public.agent_summaries drop constraint agent_summaries_conversation_id_user_id_fkey;
alter table public.agent_note_uses
  drop constraint agent_note_uses_conversation_id_user_id_fkey,
  drop constraint agent_note_uses_note_id_fkey,
  drop constraint agent_note_uses_pkey;
alter table public.agent_chats
  drop constraint agent_chats_pkey,
  add constraint agent_chats_pkey primary key using index agent_chats_key;
alter table public.agent_notes
  drop constraint agent_notes_pkey,
  add constraint agent_notes_pkey primary key using index agent_notes_key;
alter table public.agent_note_uses
  add constraint agent_note_uses_pkey primary key using index agent_note_uses_key;

alter table public.agent_turns add constraint agent_turns_chat_fkey
  foreign key (tenant_key, conversation_id, user_id)
  references public.agent_chats (tenant_key, id, user_id) on delete cascade;
alter table public.agent_messages add constraint agent_messages_chat_fkey
  foreign key (tenant_key, conversation_id, user_id)
  references public.agent_chats (tenant_key, id, user_id) on delete cascade;
alter table public.agent_summaries add constraint agent_summaries_chat_fkey
  foreign key (tenant_key, conversation_id, user_id)
  references public.agent_chats (tenant_key, id, user_id) on delete cascade;
alter table public.agent_note_uses
  add constraint agent_note_uses_chat_fkey foreign key (tenant_key, conversation_id, user_id)
    references public.agent_chats (tenant_key, id, user_id) on delete cascade,
  add constraint agent_note_uses_note_fkey foreign key (note_id, tenant_key, owner_id)
    references public.agent_notes (id, tenant_key, user_id) on delete cascade;

alter table public.agent_summaries drop constraint agent_summaries_conversation_id_user_id_key;
alter table public.agent_summaries add constraint agent_summaries_conversation_key
  unique (tenant_key, conversation_id, user_id);

do $$
begin
  -- its name depends on the server's version
  execute 'alter table public.agent_working_memory drop constraint ' || (
    select quote_ident(c.conname) from pg_constraint c
    where c.conrelid = 'public.agent_working_memory'::regclass and c.contype = 'u');
end
$$;

alter table public.chat_transcript
  drop constraint chat_transcript_chat_id_fkey,
  drop constraint chat_transcript_pkey;
alter table public.chat_conversations
  drop constraint chat_conversations_pkey,
  add constraint chat_conversations_pkey primary key using index chat_conversations_key;
alter table public.chat_transcript
  add constraint chat_transcript_pkey primary key using index chat_transcript_key,
  add constraint chat_transcript_chat_fkey foreign key (tenant_key, chat_id)
    references public.chat_conversations (tenant_key, chat_id) on delete cascade;
