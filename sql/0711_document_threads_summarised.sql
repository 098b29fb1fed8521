-- Purpose: summaries and vectors of a thread of comments lie in its chat, as its messages do (0710).

alter table public.agent_summaries drop constraint agent_summaries_place;
alter table public.agent_summaries add constraint agent_summaries_place check (
  starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;

-- The table of vectors is there where somebody switched them on (functions/vectors.sql).
do $$
begin
  if to_regclass('public.agent_embeddings') is not null then
    alter table public.agent_embeddings drop constraint agent_embeddings_place;
    alter table public.agent_embeddings add constraint agent_embeddings_place check (
      starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
  end if;
end
$$;
