-- Purpose: when Feishu last said that everybody in a chat can open a document that answers there told of.

alter table bot_private.told_documents add column open_at timestamptz;  -- null: not since it was told
