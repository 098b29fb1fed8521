-- Purpose: how many imported messages somebody wrote. They may know of all, whoever may read them.

-- Those of whom the token is of, in the chat of the token.
create or replace function bot_private.own_imported() returns bigint
language sql stable security definer set search_path = ''
as $$
  select count(*)
  from public.chat_imports i join public.imported_messages m on m.import_id = i.id
  where i.chat_id = (select public.claim('chat_id'))
    and i.tenant_key = coalesce((select public.claim('tenant_key')), '')
    and i.state <> 'removing' and m.author_id = (select public.claim('actor'))
$$;
