"""Supabase's database advisor over the migrated schema, in a compact version of its lints.

Source: Supabase, “Performance and security advisors” (database linter); the numbers are its own.
Lints about extensions, storage buckets, foreign tables and users of Supabase Auth are left out: the
schema has none of these. Usage statistics (unused index, bloat) say nothing of an empty database.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

_OURS = "('public', 'bot_private', 'feishu_bot')"
_OF_EXTENSION = "exists (select from pg_depend d where d.objid = {}.oid and d.deptype = 'e')"
_TABLES = f"""
pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and n.nspname in {_OURS}
"""
_FUNCTIONS = f"""
pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in {_OURS} and not {_OF_EXTENSION.format("p")}
"""
_POLICIES = f"pg_policies p where p.schemaname in {_OURS}"
_API_ROLES = "array['anon', 'authenticated', 'public']::name[]"
_TABLE = "n.nspname || '.' || c.relname"
_FUNCTION = "n.nspname || '.' || p.proname"
_POLICY = "p.schemaname || '.' || p.tablename || ': ' || p.policyname"

# Each gives the objects that the lint finds.
LINTS: Mapping[str, str] = {
    "0001 unindexed foreign key": f"""
        select conrelid::regclass || ': ' || conname from pg_constraint k
        join pg_class c on c.oid = conrelid join pg_namespace n on n.oid = c.relnamespace
        where contype = 'f' and n.nspname in {_OURS} and not exists (
          select from pg_index i where i.indrelid = conrelid
          and (i.indkey::int2[])[0:cardinality(conkey) - 1] @> conkey)""",
    "0003 claim read once per row": f"""
        select {_POLICY} from {_POLICIES} and (
          regexp_replace(lower(coalesce(qual, '') || coalesce(with_check, '')),
            '\\( *select [^()]*\\([^()]*\\)', '', 'g')
          ~ '(auth\\.|claim\\(|current_setting\\()')""",
    "0004 no primary key": f"""
        select {_TABLE} from {_TABLES} and not exists (
          select from pg_index i where i.indrelid = c.oid and i.indisprimary)""",
    "0006 several permissive policies": f"""
        select p.schemaname || '.' || p.tablename || ': ' || role || ' ' || p.cmd
        from (select *, unnest(roles) as role from pg_policies) p
        where p.schemaname in {_OURS} and permissive = 'PERMISSIVE'
        group by p.schemaname, p.tablename, role, p.cmd having count(*) > 1""",
    "0007 policy without row level security": f"""
        select {_TABLE} from {_TABLES} and not c.relrowsecurity
        and exists (select from pg_policy o where o.polrelid = c.oid)""",
    "0008 row level security without policy": f"""
        select {_TABLE} from {_TABLES} and c.relrowsecurity
        and not exists (select from pg_policy o where o.polrelid = c.oid)""",
    "0009 duplicate index": f"""
        select {_TABLE} from {_TABLES} and exists (
          select from pg_index i where i.indrelid = c.oid
          group by indkey, indclass, indoption, pg_get_expr(indexprs, indrelid),
            pg_get_expr(indpred, indrelid), indisunique
          having count(*) > 1)""",
    "0010 view with the rights of its owner": f"""
        select {_TABLE} from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind = 'v' and n.nspname in {_OURS} and not {_OF_EXTENSION.format("c")}
        and not coalesce(c.reloptions::text ~ 'security_invoker=(true|on|1)', false)""",
    "0011 function without a fixed search path": f"""
        select distinct {_FUNCTION} from {_FUNCTIONS}
        and not coalesce(p.proconfig::text ~ 'search_path=', false)""",
    "0013 no row level security in public": f"""
        select {_TABLE} from {_TABLES} and n.nspname = 'public' and not c.relrowsecurity""",
    "0014 extension in public": """
        select extname from pg_extension where extnamespace = 'public'::regnamespace""",
    "0015 policy on what users write about themselves": f"""
        select {_POLICY} from {_POLICIES}
        and coalesce(qual, '') || coalesce(with_check, '') like '%user_metadata%'""",
    "0016 materialized view in the API": """
        select relname::text from pg_class c where relkind = 'm'
        and relnamespace = 'public'::regnamespace
        and (has_table_privilege('anon', c.oid, 'select')
          or has_table_privilege('authenticated', c.oid, 'select'))""",
    "0024 policy that is always true": f"""
        select {_POLICY} from {_POLICIES} and permissive = 'PERMISSIVE' and roles && {_API_ROLES}
        and cmd <> 'SELECT' and (coalesce(qual, '') in ('true', '(true)')
          or coalesce(with_check, '') in ('true', '(true)'))""",
    "0026 table that anon sees in GraphQL": f"""
        select {_TABLE} from {_TABLES} and has_any_column_privilege('anon', c.oid, 'select')""",
    "0027 table that authenticated sees in GraphQL": f"""
        select {_TABLE} from {_TABLES} and n.nspname = 'public'
        and has_any_column_privilege('authenticated', c.oid, 'select')""",
    "0028 function of its owner that anon can call": f"""
        select distinct {_FUNCTION} from {_FUNCTIONS} and p.prosecdef
        and has_function_privilege('anon', p.oid, 'execute')""",
    "0029 function of its owner that authenticated can call": f"""
        select distinct {_FUNCTION} from {_FUNCTIONS} and p.prosecdef and n.nspname = 'public'
        and has_function_privilege('authenticated', p.oid, 'execute')""",
}


def findings(database: psycopg.Connection, lint: str) -> set[str]:
    """Returns what the lint finds."""
    return {str(one) for (one,) in database.execute(LINTS[lint].encode()).fetchall()}
