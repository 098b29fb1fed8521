-- Purpose: what tells lines that left their transcript earlier is kept once, too, and not for each turn; of questions
-- that stand not at all. A source whose turns read it differently stays as it is.

do $$
declare
  v_last text := '';
  v_sources text[];
begin
  loop
    v_sources := array(
      select distinct s.source from bot_private.source_terms s where s.source > v_last order by 1 limit 300);
    exit when v_sources = '{}';
    v_last := v_sources[cardinality(v_sources)];
    perform pg_advisory_xact_lock(bot_private.sources_lock());
    with talk as materialized (
      select s.source, min(t.created_at) as first_given, min(s.terms) as terms,
             array_agg(bot_private.reader_number(t.id)) as readers
      from bot_private.source_terms s join public.agent_turns t on t.id = s.turn_id
      where s.source = any (v_sources)
      group by s.source
      having min(s.terms) = max(s.terms) and bool_and(
        s.source = any (t.given) and s.source <> t.id and s.source <> all (t.read_messages) and not exists (
          select from public.agent_digest_sources d where d.turn_id = t.id and d.message_id = s.source))
    ), gone as (
      delete from bot_private.source_terms s using talk where s.source = talk.source
    )
    insert into bot_private.talk_terms as k (source, first_given, readers, terms)
    select t.source, t.first_given, t.readers, t.terms from talk t
    where t.terms <> '{}' and not exists (
      select from public.agent_messages m where m.turn_id = t.source and m.role = 'user' and m.chunk = 0)
    on conflict (source) do update set
      first_given = least(k.first_given, excluded.first_given),
      readers = array(select unnest(k.readers) union select unnest(excluded.readers)),
      terms = array(select unnest(k.terms) union select unnest(excluded.terms));
    commit;
  end loop;
end
$$;
