-- Purpose: find the turns of a chat that were given its talk when that leaves the transcript.

create index agent_turns_given_idx on public.agent_turns (hashtextextended(chat_id, 0), created_at)
  where given <> '{}';
