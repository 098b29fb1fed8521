-- Purpose: messages that were recalled before their turn began; it is then cancelled from the start.

create table public.recalled_messages (
  message_id text primary key,
  chat_id text not null,
  created_at timestamptz not null default now()
);
alter table public.recalled_messages enable row level security;
create policy recalled_messages_select on public.recalled_messages for select to authenticated
  using (chat_id = (select public.claim('chat_id')));
revoke all on public.recalled_messages from anon;
grant select on public.recalled_messages to authenticated;
grant select, insert, update, delete on public.recalled_messages to service_role;
