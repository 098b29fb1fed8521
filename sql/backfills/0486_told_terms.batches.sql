-- Purpose: answers that read files, pictures and quotations before this version know which of their words came from
-- those alone, as new ones do. Not where something that they were given is gone already: then it cannot be told.

do $$
declare
  v_turns text[];
begin
  for v_turns in
    select array_agg(n.id) from (
      select t.id, row_number() over (order by t.id) / 200 as batch from public.agent_turns t
      where (t.read_messages <> '{}' or exists (select from bot_private.source_terms s where s.turn_id = t.id))
        and not exists (
          select from unnest(bot_private.sources_of(t)) s join public.recalled_messages r
            on r.message_id in (s, 'answer:' || s))) n
    group by n.batch
  loop
    perform bot_private.keep_source_terms(t.id, to_jsonb(array(
              select r from unnest(t.read_messages) r where not starts_with(r, 'answer:'))), '{}'),
            bot_private.keep_told_terms(t.id)
    from public.agent_turns t where t.id = any (v_turns);
    commit;
  end loop;
end
$$;
