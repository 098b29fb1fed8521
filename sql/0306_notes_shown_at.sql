-- Purpose: when a card showed a list of notes, so that the last one holds in other threads too.

alter table public.agent_note_uses add column shown_at timestamptz;
create index agent_note_uses_shown_idx on public.agent_note_uses (user_id, shown_at)
  where shown_at is not null;
grant update (shown_at) on public.agent_note_uses to authenticated;
