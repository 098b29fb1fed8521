"""What no table, policy or function of ours may be. Each query names the offenders."""

from __future__ import annotations

import psycopg

# Tables of schema public that no token reads, and why.
READ_BY_NOBODY: dict[str, str] = {}

# Functions that run as their owner, and why. What they give is held against the policies in the
# attack matrix.
RUN_AS_OWNER: dict[str, str] = {
    **dict.fromkeys(
        ("turns_saying", "turns_that_help"),
        "row-level security keeps the index on words unused",
    ),
    **dict.fromkeys(
        ("recall_newest", "recall_best", "turns_beside"),
        "no token reads turn_words: they give ids, and the messages are read under the policies",
    ),
    "withdraw_own": "no token adds withdrawals: it decides which cards are the turn's own",
    "is_card_of_others": "whose card it is cannot be seen from another chat: it gives yes or no",
    "hold_messages": "a fold locks what its token may read, and may not change",
    "commands_among": "it says of known turns that they were commands, for each message told",
    "own_imported": "it counts what the token's own person wrote, whoever may read that",
    "is_gone": "no token reads the marks of other people: it gives yes or no of one message",
    "look_up_told_since": "no token reads who else is in a group: it gives a time",
    **dict.fromkeys(
        ("import_since", "readable_imports"),
        "no token reads who was in a group when: they give times",
    ),
    **dict.fromkeys(
        ("keep_seal", "seal_of", "drop_seals"),
        "no role reads the sealed tokens: they give and take those of the token's own person",
    ),
    "documents_told": "no token reads the hashes: it names documents behind its own answer",
    "documents_were_told": "no token reads told_documents: it gives yes or no of the token's place",
    "keep_given_documents": "no token reads the hashes: it narrows what a turn says it was given",
    "told_document": "no token writes told_documents: it notes one of its chat and person",
    "imports_that_help": "as turns_that_help: it gives ids, which are read under the policies",
    "index_imported": "only the service imports, and nobody writes turn_words",
    "drop_words_of": "nobody writes turn_words: it drops those of messages that are gone",
    "pass_on_sources": "only the service forgets, and nobody writes the hashes",
    "keep_terms": "no token writes turn_words: it derives them from the messages of a turn",
    **dict.fromkeys(
        (
            *("keyed_hashes", "hashes_read", "read_terms", "first_read", "read_by"),
            *("sources_read", "forget_source_terms", "forget_readers"),
        ),
        "nobody reads the key and the hashes: only the service looks whether one tells a text",
    ),
    **dict.fromkeys(
        (
            *("keep_source_terms", "keep_told_terms", "keep_talk_terms"),
            *("keep_line_terms", "keep_question_terms"),
        ),
        "no token writes the hashes: their callers look whose turn and whose chat it is",
    ),
}

_TABLE = "format('%I.%I', c.relnamespace::regnamespace, c.relname)"
_FUNCTION = "p.oid::regprocedure::text"
_OURS = """(
    select n.oid from pg_namespace n where n.nspname in ('public', 'bot_private', 'feishu_bot'))"""
_NOT_OF_AN_EXTENSION = (
    "not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')"
)

RULES: dict[str, str] = {
    "a table without row level security": f"""
        select {_TABLE} from pg_class c
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p') and not c.relrowsecurity
    """,
    "a public table that no token can read": f"""
        select {_TABLE} from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
          and not exists (select from pg_policy y
                          where y.polrelid = c.oid and y.polcmd in ('r', '*'))
    """,
    "a policy for everybody": f"""
        select {_TABLE} || ' ' || y.polname from pg_policy y join pg_class c on c.oid = y.polrelid
        where y.polroles = '{{0}}' or 'anon'::regrole = any (y.polroles)
    """,
    "a policy that reads a claim once per row": f"""
        select {_TABLE} || ' ' || y.polname from pg_policy y join pg_class c on c.oid = y.polrelid
        where regexp_replace(
            concat(pg_get_expr(y.polqual, y.polrelid), pg_get_expr(y.polwithcheck, y.polrelid)),
            'SELECT (public\\.)?claim\\(', '', 'g') ~ 'claim\\('
    """,
    "a table that anon holds a privilege on": f"""
        select {_TABLE} from pg_class c
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm')
          and has_table_privilege('anon', c.oid, 'select, insert, update, delete, truncate')
    """,
    "a view that steps over policies": f"""
        select {_TABLE} from pg_class c
        where c.relnamespace in {_OURS} and c.relkind in ('v', 'm')
          and not coalesce(c.reloptions && array['security_invoker=true', 'security_invoker=on'],
                           false)
    """,
    "a function that anon can call": f"""
        select {_FUNCTION} from pg_proc p
        where p.pronamespace in ('public'::regnamespace, 'bot_private'::regnamespace)
          and {_NOT_OF_AN_EXTENSION}
          and has_function_privilege('anon', p.oid, 'execute')
    """,
    "a function that runs as its owner": f"""
        select {_FUNCTION} from pg_proc p
        where p.pronamespace in {_OURS} and {_NOT_OF_AN_EXTENSION} and p.prosecdef
          and not (p.pronamespace = 'bot_private'::regnamespace
                   and p.proname = any ('{{{",".join(RUN_AS_OWNER)}}}'))
    """,
    "a function without a fixed search path": f"""
        select {_FUNCTION} from pg_proc p
        where p.pronamespace in {_OURS} and {_NOT_OF_AN_EXTENSION}
          and p.prosqlbody is null  -- resolved when it was created
          and not coalesce(p.proconfig && array['search_path=pg_catalog, pg_temp',
            'search_path=extensions, public, pg_temp', 'search_path=feishu_bot'], false)
    """,
    "a function that runs as its owner and finds types of its caller": f"""
        select {_FUNCTION} from pg_proc p
        where p.pronamespace in {_OURS} and {_NOT_OF_AN_EXTENSION} and p.prosecdef
          and 'search_path=pg_catalog, pg_temp' <> all (coalesce(p.proconfig, '{{}}'))
    """,
    "a table whose rows cannot be deleted under a publication": f"""
        select c.oid::regclass::text from pg_class c
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p')
          and case c.relreplident
                when 'd' then not exists (select from pg_index i
                                          where i.indrelid = c.oid and i.indisprimary)
                when 'i' then not exists (select from pg_index i
                                          where i.indrelid = c.oid and i.indisreplident)
                else c.relreplident = 'n' end
    """,
}


def offenders(connection: psycopg.Connection, rule: str) -> set[str]:
    """What breaks `rule` and is not excused."""
    found = {name for (name,) in connection.execute(RULES[rule].encode())}
    return found - READ_BY_NOBODY.keys() if rule.startswith("a public table") else found
