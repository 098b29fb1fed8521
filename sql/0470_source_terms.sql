-- Purpose: recognise an answer that tells a file, a forward or a quotation after that was taken back, although
-- its text is never stored: keyed hashes of its distinctive terms are.
--
-- No token and no API reaches either table. A row goes with its source, and with the turn that read it.

-- The pads of HMAC-SHA256 for a random key, made once for each database.
create table bot_private.source_key (
  inner_pad bytea not null check (octet_length(inner_pad) = 64),
  outer_pad bytea not null check (octet_length(outer_pad) = 64)
);
create unique index source_key_is_one on bot_private.source_key ((true));
alter table bot_private.source_key enable row level security;
revoke all on bot_private.source_key from public, anon, authenticated, service_role;

do $$
declare
  v_key constant bytea :=
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
  v_inner bytea := decode(repeat('36', 64), 'hex');
  v_outer bytea := decode(repeat('5c', 64), 'hex');
begin
  for n in 0 .. octet_length(v_key) - 1 loop
    v_inner := set_byte(v_inner, n, get_byte(v_inner, n) # get_byte(v_key, n));
    v_outer := set_byte(v_outer, n, get_byte(v_outer, n) # get_byte(v_key, n));
  end loop;
  insert into bot_private.source_key values (v_inner, v_outer);
end
$$;

create table bot_private.source_terms (
  source text not null,  -- message_id
  turn_id text not null references public.agent_turns (id) on delete cascade,
  terms bigint[] not null,
  primary key (source, turn_id)
);
create index source_terms_turn_idx on bot_private.source_terms (turn_id);
alter table bot_private.source_terms enable row level security;
revoke all on bot_private.source_terms from public, anon, authenticated, service_role;
