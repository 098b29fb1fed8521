-- Purpose: which groups consist of topics: there a reply may name its topic by root_id alone, which elsewhere
-- is only a quotation.

alter table public.chats add column topics boolean;  -- null: not learned yet
