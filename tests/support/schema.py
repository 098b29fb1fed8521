"""Everything that defines a database, by name, so that two databases can be compared."""

from __future__ import annotations

from typing import Any

import psycopg

_OURS = """(
    select n.oid from pg_namespace n where n.nspname in ('public', 'bot_private', 'feishu_bot'))"""
_GRANTS = """
    (select string_agg(concat(case a.grantee when 0 then 'public' else a.grantee::regrole::text end,
                              ' ', a.privilege_type, case when a.is_grantable then '*' end), ', '
                       order by a.grantee::regrole::text, a.privilege_type)
     from aclexplode(coalesce({acl}, acldefault({kind}, {owner}))) a)
"""
_NOT_OF_AN_EXTENSION = (
    "not exists (select from pg_depend d where d.objid = {oid} and d.deptype = 'e')"
)
# The owner of the database owns everything in it, whatever the role is called.
_OWNER = """
    case when {role} = (select datdba from pg_database where datname = current_database())
         then 'owner' else {role}::regrole::text end"""
_ROLES = "('anon', 'authenticated', 'service_role', 'bot_console', 'bot_verifier')"
_KIND_OF_ACL = "case c.relkind when 'S' then 's' else 'r' end::\"char\""


def _grants(acl: str, kind: str, owner: str) -> str:
    return _GRANTS.format(acl=acl, kind=kind, owner=owner)


# Each query gives names and definitions; names are told apart by the kind before them.
_QUERIES: dict[str, str] = {
    "column": f"""
        select c.oid::regclass || '.' || a.attname,
               concat_ws(' ', format_type(a.atttypid, a.atttypmod),
                         case when a.attnotnull then 'not null' end,
                         pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated,
                         a.attstorage, a.attcompression, a.attstattarget, a.attoptions,
                         nullif(a.attcollation::regcollation::text, '"default"'),
                         'place ' || row_number() over (partition by c.oid order by a.attnum))
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v') and a.attnum > 0
          and not a.attisdropped
    """,
    "constraint": f"""
        select k.conrelid::regclass || '.' || k.conname,
               concat(pg_get_constraintdef(k.oid), case when not k.convalidated then '?' end)
        from pg_constraint k where k.connamespace in {_OURS} and k.conrelid <> 0
    """,
    "index": f"""
        select i.indexrelid::regclass::text,
               concat_ws(' ', pg_get_indexdef(i.indexrelid),
                         case when not i.indisvalid then 'invalid' end)
        from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace in {_OURS}
    """,
    "table": f"""
        select c.oid::regclass::text,
               concat_ws(' ', c.relkind, c.relpersistence, c.relrowsecurity,
                         c.relforcerowsecurity, c.reloptions,
                         case when c.relkind = 'v' then pg_get_viewdef(c.oid) end)
        from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm')
    """,
    "replica identity": f"""
        select c.oid::regclass::text,
               concat_ws(' ', c.relreplident,
                         (select i.indexrelid::regclass::text from pg_index i
                          where i.indrelid = c.oid and i.indisreplident))
        from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p')
    """,
    "owner": f"""
        select concat(case c.relkind when 'S' then 'sequence' else 'table' end, ' ',
                      c.oid::regclass), {_OWNER.format(role="c.relowner")}
        from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm', 'S')
        union all
        select concat('function ', p.oid::regprocedure), {_OWNER.format(role="p.proowner")}
        from pg_proc p where p.pronamespace in {_OURS}
          and {_NOT_OF_AN_EXTENSION.format(oid="p.oid")}
    """,
    "sequence": f"""
        select s.seqrelid::regclass::text,
               concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
                         s.seqcache, s.seqcycle)
        from pg_sequence s join pg_class c on c.oid = s.seqrelid where c.relnamespace in {_OURS}
    """,
    "comment": f"""
        select pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description
        from pg_description d
        where (d.classoid, d.objoid) in (
          select 'pg_class'::regclass::oid, oid from pg_class where relnamespace in {_OURS}
          union all
          select 'pg_proc'::regclass::oid, p.oid from pg_proc p
          where p.pronamespace in {_OURS} and {_NOT_OF_AN_EXTENSION.format(oid="p.oid")})
    """,
    "grants on table": f"""
        select c.oid::regclass::text, {_grants("c.relacl", _KIND_OF_ACL, "c.relowner")}
        from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm', 'S')
    """,
    "grants on column": f"""
        select c.oid::regclass || '.' || a.attname, {_grants("a.attacl", "'c'", "c.relowner")}
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v') and a.attacl is not null
    """,
    "policy": f"""
        select p.polrelid::regclass || '.' || p.polname,
               concat_ws(' | ', p.polcmd, p.polpermissive, p.polroles::regrole[],
                         pg_get_expr(p.polqual, p.polrelid),
                         'check ' || pg_get_expr(p.polwithcheck, p.polrelid))
        from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace in {_OURS}
    """,
    "trigger": f"""
        select t.tgrelid::regclass || '.' || t.tgname,
               concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
        from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace in {_OURS} and not t.tgisinternal
    """,
    "function": f"""
        select p.oid::regprocedure::text, pg_get_functiondef(p.oid)
        from pg_proc p
        where p.pronamespace in {_OURS} and p.prokind in ('f', 'p')
          and {_NOT_OF_AN_EXTENSION.format(oid="p.oid")}
    """,
    "grants on function": f"""
        select p.oid::regprocedure::text, {_grants("p.proacl", "'f'", "p.proowner")}
        from pg_proc p
        where p.pronamespace in {_OURS} and {_NOT_OF_AN_EXTENSION.format(oid="p.oid")}
    """,
    "type": f"""
        select t.oid::regtype::text,
               (select string_agg(e.enumlabel, ', ' order by e.enumsortorder)
                from pg_enum e where e.enumtypid = t.oid)
        from pg_type t where t.typnamespace in {_OURS} and t.typtype in ('c', 'e', 'd')
    """,
    "schema": f"""
        select n.nspname, {_grants("n.nspacl", "'n'", "n.nspowner")}
        from pg_namespace n where n.nspname in ('public', 'bot_private', 'feishu_bot', 'extensions')
    """,
    "extension": """
        select e.extname, concat_ws(' ', e.extnamespace::regnamespace, e.extversion)
        from pg_extension e
    """,
    "default privilege": """
        select concat_ws(' ', d.defaclrole::regrole, d.defaclnamespace::regnamespace,
                         d.defaclobjtype), d.defaclacl::text
        from pg_default_acl d
    """,
    "grants on database": f"""
        select '', {_grants("d.datacl", "'d'", "d.datdba")}
        from pg_database d where d.datname = current_database()
    """,
    "role": f"""
        select r.rolname,
               concat_ws(' ', r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,
                         r.rolcanlogin, r.rolbypassrls,
                         (select string_agg(s.setconfig::text, ' ') from pg_db_role_setting s
                          where s.setrole = r.oid))
        from pg_roles r where r.rolname in {_ROLES}
    """,
}

KINDS = tuple(_QUERIES)


def definitions(connection: psycopg.Connection) -> dict[str, str]:
    """`kind name` and definition of everything in our schemas, and of our roles."""
    with connection.transaction():
        connection.execute("set local search_path = ''")  # names come qualified
        return {
            f"{kind} {name}": definition or ""
            for kind, query in _QUERIES.items()
            for name, definition in connection.execute(query.encode())
        }


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The names whose definitions differ, or that only one of the two has."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def rows(connection: psycopg.Connection) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table of our two schemas, by table."""
    tables = connection.execute(
        f"""
        select c.oid::regclass::text from pg_class c
        where c.relnamespace in {_OURS} and c.relkind in ('r', 'p')
    """.encode()
    ).fetchall()
    found = {}
    for (table,) in tables:
        query = f"select to_jsonb(t) from {table} t"
        found[table] = [row for (row,) in connection.execute(query.encode())]
    return found


def lost(
    before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    """The rows of `before` that `after` does not have any more; columns may have come."""
    return [
        (table, row)
        for table, had in before.items()
        for row in had
        if not any(row.items() <= one.items() for one in after.get(table, ()))
    ]
