-- Purpose: a digest reads what was said in a chat from Feishu, too; not what its author had forgotten.
--
-- Who had the bot forget them, and when: as a mark that names nobody, for as long back as a digest
-- reaches. They read their own.

create table public.forgotten_people (
  mark text primary key,
  at timestamptz not null default now()
);
alter table public.forgotten_people enable row level security;
create policy forgotten_people_select on public.forgotten_people for select to authenticated using (
  mark = encode(sha256(convert_to('forgotten ' || (select public.claim('actor')), 'UTF8')), 'hex'));
revoke all on public.forgotten_people from anon, authenticated;
grant select on public.forgotten_people to authenticated;
grant select, insert, update, delete on public.forgotten_people to service_role;
