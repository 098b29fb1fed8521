-- Purpose: lines of a transcript and their topics are numbered as they come, so that a worker which holds
-- those up to a number is told only what came after it.

alter table public.chat_transcript add column number bigint generated always as identity;
alter table public.chat_topics add column number bigint generated always as identity;
revoke all on sequence public.chat_transcript_number_seq, public.chat_topics_number_seq
  from public, anon, authenticated;
create index chat_transcript_number_idx on public.chat_transcript (tenant_key, chat_id, number);
