-- Purpose: which message a fact or a note was made from, what it was before, and which cards of ours
-- are still to be withdrawn because what they answered was taken back.

-- {key: {"turn": the message's id, "at": when}}; without an entry: from before, or by an operator.
alter table public.agent_working_memory add column sources jsonb not null default '{}';
grant update (sources) on public.agent_working_memory to authenticated;
create index agent_working_memory_place_idx on public.agent_working_memory (chat_id);

alter table public.agent_working_memory_history
  add column turn_id text,                            -- the message that made this change
  add column was_sources jsonb not null default '{}'; -- whence the values of before came

-- Of a note the message it was created by, and by which its title, body and tags were last changed.
alter table public.agent_notes add column turn_id text;
alter table public.agent_notes add column sources jsonb not null default '{}';
grant update (sources) on public.agent_notes to authenticated;
create index agent_notes_turn_idx on public.agent_notes (turn_id) where turn_id is not null;

-- What a note was before a message changed it: only the fields that changed. At most 20 a note.
create table public.agent_note_changes (
  id bigint generated always as identity primary key,
  note_id text not null,
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  turn_id text not null,
  was jsonb not null,
  was_sources jsonb not null default '{}',
  at timestamptz not null default now(),
  foreign key (note_id, tenant_key, user_id)
    references public.agent_notes (id, tenant_key, user_id) on delete cascade
);
create index agent_note_changes_note_idx on public.agent_note_changes (note_id, tenant_key, user_id, id);
create index agent_note_changes_turn_idx on public.agent_note_changes (turn_id);
alter table public.agent_note_changes enable row level security;

-- They are their author's, where the note may be read; nobody needs to read them but who undoes a change.
create policy agent_note_changes_select on public.agent_note_changes for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and exists (select from public.agent_notes n
              where n.id = note_id and n.tenant_key = agent_note_changes.tenant_key
                and n.user_id = agent_note_changes.user_id));
create policy agent_note_changes_insert on public.agent_note_changes
  for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and exists (select from public.agent_notes n
              where n.id = note_id and n.tenant_key = agent_note_changes.tenant_key
                and n.user_id = agent_note_changes.user_id));
create policy agent_note_changes_delete on public.agent_note_changes
  for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and user_id = (select public.claim('actor'))
  and exists (select from public.agent_notes n
              where n.id = note_id and n.tenant_key = agent_note_changes.tenant_key
                and n.user_id = agent_note_changes.user_id));
revoke all on public.agent_note_changes from anon, authenticated;
revoke all on sequence public.agent_note_changes_id_seq from anon, authenticated;
grant select, insert, delete on public.agent_note_changes to authenticated;
grant select, insert, update, delete on public.agent_note_changes to service_role;

-- A turn that forgot something keeps no words of its own, once its card is sent.
alter table public.agent_turns add column forgets boolean not null default false;
grant update (forgets) on public.agent_turns to authenticated;
create index agent_turns_forgets_idx on public.agent_turns (id) where forgets;

-- The name of a group is for whoever may read what was said there.
drop policy chats_select on public.chats;
create policy chats_select on public.chats for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id')) or (select public.readable_chats()) ? chat_id));

-- Cards of ours that are still shown and must not be. Ids only.
create table public.agent_withdrawals (
  message_id text primary key,
  chat_id text not null,
  tenant_key text not null default '',
  tries integer not null default 0,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now()
);
create index agent_withdrawals_due_idx on public.agent_withdrawals (due_at);
alter table public.agent_withdrawals enable row level security;

-- A turn adds the card that it sent while its question was taken back.
create policy agent_withdrawals_select on public.agent_withdrawals for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')));
create policy agent_withdrawals_insert on public.agent_withdrawals for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')));
revoke all on public.agent_withdrawals from anon, authenticated;
grant select, insert on public.agent_withdrawals to authenticated;
grant select, insert, update, delete on public.agent_withdrawals to service_role;
