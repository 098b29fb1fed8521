-- Purpose: documents that are closed, as long as an answer stands that was given what one told: it is not used.

alter table bot_private.told_documents
  add column closed_at timestamptz,
  add column first_at timestamptz not null default now();  -- when it was first told there
update bot_private.told_documents set first_at = told_at;
