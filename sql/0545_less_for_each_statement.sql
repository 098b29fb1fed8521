-- Purpose: what every statement of a turn costs before it reads a row, or after it wrote one, is less.

-- Which of some turns were commands is answered without reading a turn.
create index agent_turns_command_idx on public.agent_turns (id) where intended ->> 'reason' = 'command';

-- Of which tenant a row is, the restrictive policies say for every operation (0482). The others need not say it again:
-- each claim is a plan of its own in every statement.
alter policy agent_chats_select on public.agent_chats using (
    (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or user_id in ((select public.claim('sub')), (select public.claim('actor')))));
alter policy agent_chats_insert on public.agent_chats with check (
    chat_id = (select public.claim('chat_id'))
    and chat_type is not distinct from (select public.claim('chat_type'))
    and user_id in ((select public.claim('sub')), (select public.claim('actor')))
    and ((select public.claim('chat_type')) is distinct from 'p2p'
         or (select public.claim('sub')) = (select public.claim('actor'))));
alter policy agent_chats_update on public.agent_chats using (
    chat_id = (select public.claim('chat_id'))
    and user_id in ((select public.claim('sub')), (select public.claim('actor'))));
alter policy agent_chats_delete on public.agent_chats using (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor')));
alter policy agent_turns_select on public.agent_turns using (
    (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
alter policy agent_turns_insert on public.agent_turns with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
alter policy agent_turns_update on public.agent_turns using (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
alter policy agent_turns_delete on public.agent_turns using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id));
alter policy agent_messages_select on public.agent_messages using (
    (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
alter policy agent_messages_insert on public.agent_messages with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
alter policy agent_messages_update on public.agent_messages using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) in (user_id, actor_id));
alter policy agent_messages_delete on public.agent_messages using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id));
alter policy agent_working_memory_select on public.agent_working_memory using (
    (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
alter policy agent_working_memory_insert on public.agent_working_memory with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor'))
    and (scope = 'chat' or user_id = actor_id));
alter policy agent_working_memory_update on public.agent_working_memory using (
    ((user_id = (select public.claim('sub'))
          and actor_id = (select public.claim('actor'))
          and chat_id = (select public.claim('chat_id')))
         or ((select public.claim('sub')) = (select public.claim('actor'))
             and (select public.claim('actor')) in (user_id, actor_id)
             and (chat_id = (select public.claim('chat_id'))
                  or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz))));
alter policy agent_working_memory_delete on public.agent_working_memory using (
    (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id)
    and (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
alter policy agent_notes_select on public.agent_notes using (
    (chat_id = (select public.claim('chat_id'))
         or shared_chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or shared_chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
alter policy agent_notes_insert on public.agent_notes with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('actor')));
alter policy agent_notes_update on public.agent_notes using (
    user_id = (select public.claim('actor'))) with check (
    user_id = (select public.claim('actor'))
    and (shared_chat_id is null
         or shared_chat_id = (select public.claim('chat_id'))
         or shared_chat_id = chat_id
         or (select public.readable_chats()) ? shared_chat_id));
alter policy agent_notes_delete on public.agent_notes using (
    user_id = (select public.claim('actor')));

-- Postgres reads the conditions of a table anew for each statement that writes to it: one array is shorter than many
-- texts. The rows that are there were checked.
alter table public.agent_turns
  drop constraint agent_turns_origin_known, drop constraint agent_turns_outcome_known,
  drop constraint agent_turns_state_check,
  add constraint agent_turns_origin_known check (origin = any (
    '{message,button,again,retry,reaction,reminder,digest,unasked,offer,private_answer}')) not valid,
  add constraint agent_turns_outcome_known check (outcome = any (
    '{answered,apologised,refused,stopped,silent,undelivered,taken_back,offer}')) not valid,
  add constraint agent_turns_state_check check (state = any ('{open,pending,sent,failed,cancelled}')) not valid;
alter table public.agent_messages
  drop constraint agent_messages_role_check, drop constraint agent_messages_status_check,
  add constraint agent_messages_role_check check (role = any ('{user,assistant}')) not valid,
  add constraint agent_messages_status_check check (status = any ('{received,pending,sent,failed}')) not valid;
