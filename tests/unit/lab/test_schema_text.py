"""Postgres's spelling becomes what people write, and comments come from the files."""

from __future__ import annotations

import pytest

from lab.schema.expressions import WIDTH, conditions, filled, readable
from lab.schema.sources import comments, functions


@pytest.mark.parametrize(
    ("spelt", "written"),
    [
        ("(( SELECT public.claim('sub'::text) AS claim))", "(select public.claim('sub'))"),
        ("state = ANY (ARRAY['Open'::text, 'sent'::text])", "state in ('Open', 'sent')"),
        ("kind <> ALL (ARRAY['show'::text, 'share'::text])", "kind not in ('show', 'share')"),
        ("length(name) >= 1 AND length(name) <= 60", "length(name) between 1 and 60"),
        ("(('f:'::text || chat_id) || ':'::text) || root_id", "'f:' || chat_id || ':' || root_id"),
        ("NOT (a ->> 'b'::text) IS DISTINCT FROM c", "(a ->> 'b') is not distinct from c"),
        ("seen_at > (now() - '00:10:00'::interval)", "seen_at > (now() - '00:10:00'::interval)"),
        ("CREATE INDEX i ON public.t USING btree (a DESC)", "create index i on public.t (a desc)"),
    ],
)  # fmt: skip
def test_an_expression_is_readable(spelt: str, written: str) -> None:
    assert readable(spelt) == written


def test_a_long_condition_has_a_line_for_each_part() -> None:
    long = "a_rather_long_column_name = 'and a rather long value in quotes'"
    text = f"({long}) and ({long} or {long} and b between 1 and 2)"

    assert conditions(text, "    ") == (
        f"    {long}\n    and ({long}\n         or ({long} and b between 1 and 2))"
    )


def test_what_is_quoted_is_not_broken() -> None:
    value = "'one two three four five six seven'"
    lines = filled(" ".join([value] * 6)).split("\n")

    assert max(map(len, lines)) <= WIDTH
    assert [line.count("'") % 2 for line in lines] == [0] * len(lines)


FILES = """
-- Who is who.
-- Only the service writes.
create table public.people (
  open_id text primary key,
  name text not null,  -- as Feishu gave it
  -- the tenant, where
  -- it is known
  tenant text
);

-- When they were seen.
alter table public.people add column seen_at timestamptz;
alter table public.people add column gone boolean;  -- null: not known
-- What they like.
alter table public.people
  add column likes text check (likes in ('a', 'b')),
  add column since bigint;  -- ms since epoch

create function public.claim(name text) returns text
language sql stable
return current_setting('x$y');

create or replace function public.mine() returns text
language plpgsql as $$
begin
  return 'old; text';
end
$$;
create or replace function public.mine() returns text
language sql as $$ select 'new' $$;
"""


def test_comments_come_from_the_files() -> None:
    assert comments(FILES) == {
        "public.people": "Who is who. Only the service writes.",
        "public.people.name": "as Feishu gave it",
        "public.people.tenant": "the tenant, where it is known",
        "public.people.seen_at": "When they were seen.",
        "public.people.gone": "null: not known",
        "public.people.likes": "What they like.",
        "public.people.since": "ms since epoch",
    }


def test_a_function_stands_as_it_was_written_last() -> None:
    assert functions(FILES) == [
        "create function public.claim(name text) returns text\nlanguage sql stable\n"
        "return current_setting('x$y');",
        "create or replace function public.mine() returns text\n"
        "language sql as $$ select 'new' $$;",
    ]
