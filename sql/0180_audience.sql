-- Purpose: who may read what: place decides, and an answer shows nobody what they could not read.
--
-- Every row carries its author (actor_id), its subject (user_id), its place (chat_id, in a tenant)
-- and its source (the turn's or card's message). The token of a turn names the place in which the
-- answer is given (chat_id, chat_type), the subject (sub) and the sender (actor).
--
--   In a group, the sources are what was said to the bot in that group, by anybody.
--   In p2p, the person's own p2p, and the groups they are in, since they joined.
--   With the claim sharing = 'person' only what the sender wrote or what is about them.
--
-- user_id = sub says whose history a thread shows and where a turn is written; it is no right to read.
-- A row without an author is from before this rule, of mixed source, and shown to nobody.
--
-- What may change of a row is granted column by column: who, where and of what it is never does.

-- The other places that may be read, {chat_id: since when}. In a group there are none.
create function public.readable_chats() returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if public.claim('chat_type') is distinct from 'p2p'
     or public.claim('sub') is distinct from public.claim('actor') then
    return '{}';
  end if;
  return (
    select coalesce(jsonb_object_agg(m.chat_id, coalesce(m.joined_at, '-infinity')), '{}')
    from public.chat_members m
    where m.open_id = public.claim('actor')
      and m.tenant_key = coalesce(public.claim('tenant_key'), '')
      and m.left_at is null and m.seen_at > now() - public.membership_lasts());
end
$$;
revoke all on function public.readable_chats() from public, anon;
grant execute on function public.readable_chats() to authenticated, service_role;

-- Authors. An answer carries who asked for it.
update public.agent_messages m set actor_id = t.actor_id
from public.agent_turns t
where t.id = m.turn_id and m.actor_id is null and t.actor_id <> '';
alter table public.agent_messages add constraint agent_messages_author
  check (actor_id <> '') not valid;
-- what somebody wrote in a turn about somebody else is found through either
create index agent_messages_author_idx on public.agent_messages (actor_id, id desc)
  where actor_id <> user_id;
create index agent_messages_thread_author_idx
  on public.agent_messages (conversation_id, actor_id, id desc) where actor_id <> user_id;

alter table public.agent_turn_terms add column actor_id text;
update public.agent_turn_terms k set actor_id = t.actor_id
from public.agent_turns t where t.id = k.turn_id and t.actor_id <> '';
create index agent_turn_terms_chat_idx on public.agent_turn_terms (chat_id, first_id);
create or replace view public.agent_turn_texts with (security_invoker = true) as
select turn_id, conversation_id, user_id, tenant_key, chat_id, min(id) as first_id,
       min(created_at) as asked_at, string_agg(content, e'\n' order by id) as content,
       max(actor_id) as actor_id
from public.agent_messages
where status <> 'failed'
group by turn_id, conversation_id, user_id, tenant_key, chat_id;

-- What is kept of a person is kept by place and author: what somebody says of another is theirs.
alter table public.agent_working_memory add column actor_id text check (actor_id <> '');
create unique index agent_working_memory_place_key on public.agent_working_memory
  (tenant_key, user_id, actor_id, scope, chat_id, conversation_id);
create index agent_working_memory_author_idx on public.agent_working_memory
  (conversation_id, actor_id) where actor_id <> user_id;

-- The kind of place, as the event said it; null in rows from before.
alter table public.agent_chats add column chat_type text check (chat_type in ('group', 'p2p'));

-- Summaries were folded from whatever the thread's subject was given; they are made again.
delete from public.agent_summaries;

-- Two tenants in one group: the tenant is part of every key. The keys of before are dropped when the
-- functions that rely on them are gone (backfills/).
create unique index agent_chats_key on public.agent_chats (tenant_key, id, user_id);
create unique index chat_conversations_key on public.chat_conversations (tenant_key, chat_id);
create unique index chat_transcript_key
  on public.chat_transcript (tenant_key, chat_id, message_id);

-- Of a note the owner: an id that somebody else's note has tells nobody that there is one.
alter table public.agent_note_uses add column owner_id text;
update public.agent_note_uses u set owner_id = n.user_id
from public.agent_notes n where n.id = u.note_id;
create unique index agent_notes_key on public.agent_notes (id, tenant_key, user_id);
create unique index agent_note_uses_key on public.agent_note_uses
  (conversation_id, user_id, note_id, owner_id);

-- A conversation lies in its chat. Rows from before are not checked again.
alter table public.agent_chats add constraint agent_chats_place
  check (id = 'feishu:' || chat_id || ':' || root_id) not valid;
alter table public.agent_turns add constraint agent_turns_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_messages add constraint agent_messages_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_turn_terms add constraint agent_turn_terms_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_notes add constraint agent_notes_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_summaries add constraint agent_summaries_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_cards add constraint agent_cards_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_working_memory add constraint agent_working_memory_place
  check (conversation_id = '' or starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;

-- Conversations.
drop policy agent_chats_select on public.agent_chats;
create policy agent_chats_select on public.agent_chats for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and ((select public.claim('sharing')) is distinct from 'person'
       or user_id in ((select public.claim('sub')), (select public.claim('actor')))));
drop policy agent_chats_insert on public.agent_chats;
create policy agent_chats_insert on public.agent_chats for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and chat_type is not distinct from (select public.claim('chat_type'))
  and user_id in ((select public.claim('sub')), (select public.claim('actor')))
  -- in p2p nobody else is meant
  and ((select public.claim('chat_type')) is distinct from 'p2p'
       or (select public.claim('sub')) = (select public.claim('actor'))));
drop policy agent_chats_update on public.agent_chats;
create policy agent_chats_update on public.agent_chats for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id in ((select public.claim('sub')), (select public.claim('actor'))));
drop policy agent_chats_delete on public.agent_chats;
create policy agent_chats_delete on public.agent_chats for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and user_id = (select public.claim('actor')));
revoke all on public.agent_chats from anon, authenticated;
-- the title is somebody's words, for operators
grant select (id, user_id, tenant_key, chat_id, chat_type, root_id, history_from, created_at,
  updated_at), insert, delete on public.agent_chats to authenticated;
grant update (title, chat_type, history_from, updated_at) on public.agent_chats to authenticated;

-- Turns.
drop policy agent_turns_select on public.agent_turns;
create policy agent_turns_select on public.agent_turns for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and ((select public.claim('sharing')) is distinct from 'person'
       or (select public.claim('actor')) in (user_id, actor_id)));
drop policy agent_turns_insert on public.agent_turns;
create policy agent_turns_insert on public.agent_turns for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
drop policy agent_turns_update on public.agent_turns;
create policy agent_turns_update on public.agent_turns for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
drop policy agent_turns_delete on public.agent_turns;
create policy agent_turns_delete on public.agent_turns for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) = (select public.claim('actor'))
  and (select public.claim('actor')) in (user_id, actor_id));
revoke all on public.agent_turns from anon, authenticated;
grant select, insert, delete on public.agent_turns to authenticated;
grant update (state, attempts, error, updated_at) on public.agent_turns to authenticated;

-- Messages. Words that were said or sent are not changed; a trigger holds that for everybody.
drop policy agent_messages_select on public.agent_messages;
create policy agent_messages_select on public.agent_messages for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and actor_id is not null
  and ((select public.claim('sharing')) is distinct from 'person'
       or (select public.claim('actor')) in (user_id, actor_id)));
drop policy agent_messages_insert on public.agent_messages;
create policy agent_messages_insert on public.agent_messages for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
drop policy agent_messages_update on public.agent_messages;
create policy agent_messages_update on public.agent_messages for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) in (user_id, actor_id));
drop policy agent_messages_delete on public.agent_messages;
create policy agent_messages_delete on public.agent_messages for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) = (select public.claim('actor'))
  and (select public.claim('actor')) in (user_id, actor_id));
revoke all on public.agent_messages from anon, authenticated;
grant select, insert, delete on public.agent_messages to authenticated;
grant update (content, message_id, status, error, tool_calls, updated_at)
  on public.agent_messages to authenticated;

-- What recall searches follows the messages it is made of.
drop policy agent_turn_terms_select on public.agent_turn_terms;
create policy agent_turn_terms_select on public.agent_turn_terms for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or asked_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and actor_id is not null
  and ((select public.claim('sharing')) is distinct from 'person'
       or (select public.claim('actor')) in (user_id, actor_id)));
drop policy agent_turn_terms_insert on public.agent_turn_terms;
create policy agent_turn_terms_insert on public.agent_turn_terms
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) in (user_id, actor_id));
drop policy agent_turn_terms_update on public.agent_turn_terms;
create policy agent_turn_terms_update on public.agent_turn_terms for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) in (user_id, actor_id));
drop policy agent_turn_terms_delete on public.agent_turn_terms;
create policy agent_turn_terms_delete on public.agent_turn_terms for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sub')) in (user_id, actor_id));
revoke all on public.agent_turn_terms from anon, authenticated;
grant select, insert, delete on public.agent_turn_terms to authenticated;
grant update (first_id, asked_at, length, terms) on public.agent_turn_terms to authenticated;
revoke all on public.agent_turn_texts from anon, authenticated;
grant select on public.agent_turn_texts to authenticated;

-- Working memory. A person's own reaches them from the places they may read.
drop policy agent_working_memory_select on public.agent_working_memory;
create policy agent_working_memory_select on public.agent_working_memory
  for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and actor_id is not null
  and ((select public.claim('sharing')) is distinct from 'person'
       or (select public.claim('actor')) in (user_id, actor_id)));
drop policy agent_working_memory_insert on public.agent_working_memory;
create policy agent_working_memory_insert on public.agent_working_memory
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor'))
  and (scope = 'chat' or user_id = actor_id));
drop policy agent_working_memory_update on public.agent_working_memory;
create policy agent_working_memory_update on public.agent_working_memory
  for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and ((user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor'))
        and chat_id = (select public.claim('chat_id')))
       -- the author corrects, and the subject has it deleted, from wherever they may read it
       or ((select public.claim('sub')) = (select public.claim('actor'))
           and (select public.claim('actor')) in (user_id, actor_id)
           and (chat_id = (select public.claim('chat_id'))
                or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz))));
drop policy agent_working_memory_delete on public.agent_working_memory;
create policy agent_working_memory_delete on public.agent_working_memory
  for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (select public.claim('sub')) = (select public.claim('actor'))
  and (select public.claim('actor')) in (user_id, actor_id)
  and (chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
revoke all on public.agent_working_memory from anon, authenticated;
grant select, insert, delete on public.agent_working_memory to authenticated;
grant update (content, updated_at) on public.agent_working_memory to authenticated;

-- Its history is for operators; a turn writes it, and reads only its place in the order.
drop policy agent_working_memory_history_select on public.agent_working_memory_history;
create policy agent_working_memory_history_select on public.agent_working_memory_history
  for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (select public.claim('actor')) in (user_id, actor_id)
  and (chat_id = (select public.claim('chat_id'))
       or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
drop policy agent_working_memory_history_insert on public.agent_working_memory_history;
create policy agent_working_memory_history_insert on public.agent_working_memory_history
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and actor_id = (select public.claim('actor'))
  and (select public.claim('sub')) in (user_id, actor_id)
  and (chat_id = (select public.claim('chat_id'))
       or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
drop policy agent_working_memory_history_delete on public.agent_working_memory_history;
create policy agent_working_memory_history_delete on public.agent_working_memory_history
  for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (select public.claim('actor')) in (user_id, actor_id)
  and (chat_id = (select public.claim('chat_id'))
       or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
revoke all on public.agent_working_memory_history from anon, authenticated;
grant select, insert, delete on public.agent_working_memory_history to authenticated;

-- Notes belong to their author, and are read where they were written or shared.
drop policy agent_notes_select on public.agent_notes;
create policy agent_notes_select on public.agent_notes for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or shared_chat_id = (select public.claim('chat_id'))
       or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
  and ((select public.claim('sharing')) is distinct from 'person'
       or shared_chat_id = (select public.claim('chat_id'))
       or user_id = (select public.claim('actor'))));
drop policy agent_notes_insert on public.agent_notes;
create policy agent_notes_insert on public.agent_notes for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('actor')));
drop policy agent_notes_update on public.agent_notes;
create policy agent_notes_update on public.agent_notes for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
) with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and (shared_chat_id is null or shared_chat_id = (select public.claim('chat_id'))
       or shared_chat_id = chat_id
       or (select public.readable_chats()) ? shared_chat_id));
drop policy agent_notes_delete on public.agent_notes;
create policy agent_notes_delete on public.agent_notes for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor')));
revoke all on public.agent_notes from anon, authenticated;
grant select, insert, delete on public.agent_notes to authenticated;
grant update (title, body, tags, shared_chat_id, updated_at) on public.agent_notes to authenticated;

-- The notes a conversation has worked with, by whom.
drop policy agent_note_uses_select on public.agent_note_uses;
create policy agent_note_uses_select on public.agent_note_uses for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
drop policy agent_note_uses_insert on public.agent_note_uses;
create policy agent_note_uses_insert on public.agent_note_uses
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
drop policy agent_note_uses_update on public.agent_note_uses;
create policy agent_note_uses_update on public.agent_note_uses
  for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
drop policy agent_note_uses_delete on public.agent_note_uses;
create policy agent_note_uses_delete on public.agent_note_uses for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
revoke all on public.agent_note_uses from anon, authenticated;
grant select, insert, delete on public.agent_note_uses to authenticated;
grant update (last_action, last_used_at, shown_place) on public.agent_note_uses to authenticated;

-- Summaries, of one place only: they hold words from before somebody joined.
drop policy agent_summaries_select on public.agent_summaries;
create policy agent_summaries_select on public.agent_summaries for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and ((select public.claim('sharing')) is distinct from 'person'
       or user_id = (select public.claim('actor'))));
drop policy agent_summaries_insert on public.agent_summaries;
create policy agent_summaries_insert on public.agent_summaries
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')) and user_id = (select public.claim('sub')));
drop policy agent_summaries_update on public.agent_summaries;
create policy agent_summaries_update on public.agent_summaries for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')) and user_id = (select public.claim('sub')));
drop policy agent_summaries_delete on public.agent_summaries;
create policy agent_summaries_delete on public.agent_summaries for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and user_id = (select public.claim('actor')));
revoke all on public.agent_summaries from anon, authenticated;
grant select, insert, delete on public.agent_summaries to authenticated;
grant update (version, content, verbatim, until_message_id, messages, updated_at)
  on public.agent_summaries to authenticated;

-- Cards that are being written: of the turn.
drop policy agent_cards_select on public.agent_cards;
create policy agent_cards_select on public.agent_cards for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
drop policy agent_cards_insert on public.agent_cards;
create policy agent_cards_insert on public.agent_cards for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
drop policy agent_cards_update on public.agent_cards;
create policy agent_cards_update on public.agent_cards for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
revoke all on public.agent_cards from anon, authenticated;
grant select, insert on public.agent_cards to authenticated;
grant update (card_id, message_id, sequence, streaming, opened_at, updated_at)
  on public.agent_cards to authenticated;

-- What belongs to the chat as a whole keeps its policies; what may change is granted by column.
revoke all on public.agent_buttons, public.agent_presses, public.chat_conversations,
  public.chat_transcript, public.agent_decisions, public.recalled_messages, public.people
  from anon, authenticated;
grant select, insert on public.agent_buttons, public.agent_presses, public.agent_decisions
  to authenticated;
grant update (message_id) on public.agent_buttons to authenticated;
grant select, insert, delete on public.chat_conversations, public.chat_transcript to authenticated;
grant update (active, quiet, started_at, last_activity, updated_at)
  on public.chat_conversations to authenticated;
drop policy chat_transcript_update on public.chat_transcript;
drop policy chat_transcript_select on public.chat_transcript;
create policy chat_transcript_select on public.chat_transcript for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and ((select public.claim('sharing')) is distinct from 'person'
       or author_id = (select public.claim('actor'))));
grant select on public.recalled_messages, public.people to authenticated;

-- Where there are vectors, they follow the messages too.
do $$
declare
  place constant text := $rule$
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) in (user_id, actor_id)
  $rule$;
begin
  if to_regclass('public.agent_embeddings') is null then
    return;
  end if;
  alter table public.agent_embeddings add column actor_id text, add column said_at timestamptz;
  update public.agent_embeddings e set actor_id = m.actor_id, said_at = m.created_at
  from public.agent_messages m where m.id = e.id;
  drop policy agent_embeddings_select on public.agent_embeddings;
  create policy agent_embeddings_select on public.agent_embeddings
    for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or said_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
  drop policy agent_embeddings_insert on public.agent_embeddings;
  execute 'create policy agent_embeddings_insert on public.agent_embeddings
           for insert to authenticated with check (' || place || ')';
  drop policy agent_embeddings_update on public.agent_embeddings;
  execute 'create policy agent_embeddings_update on public.agent_embeddings
           for update to authenticated using (' || place || ')';
  drop policy agent_embeddings_delete on public.agent_embeddings;
  execute 'create policy agent_embeddings_delete on public.agent_embeddings
           for delete to authenticated using (' || place || ')';
  revoke all on public.agent_embeddings from anon, authenticated;
  grant select, insert, delete on public.agent_embeddings to authenticated;
  grant update (model, embedding) on public.agent_embeddings to authenticated;
end
$$;
