-- relation
select c.oid::regclass::text as table, c.relrowsecurity as guarded, c.reloptions as options,
       case c.relkind when 'v' then pg_get_viewdef(c.oid, true) end as view,
       array(select distinct p.parent::regclass::text
             from (select k.confrelid as parent from pg_constraint k
                   where k.conrelid = c.oid and k.contype = 'f'
                   union all
                   select d.refobjid from pg_depend d
                   left join pg_policy p on d.classid = 'pg_policy'::regclass and p.oid = d.objid
                   left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
                   where d.refclassid = 'pg_class'::regclass and c.oid in (p.polrelid, r.ev_class)) p
             where p.parent <> c.oid order by 1) as parents
from pg_class c
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and c.relkind in ('r', 'p', 'v');

-- column
select c.oid::regclass::text as table, quote_ident(a.attname) as name, a.attname as plain,
       format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
       pg_get_expr(d.adbin, d.adrelid, true) as value, a.attidentity <> '' as numbered,
       a.attgenerated <> '' as generated,
       case when a.attstorage <> t.typstorage then a.attstorage end as storage
from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
order by c.oid, a.attnum;

-- constraint
select c.oid::regclass::text as table, quote_ident(k.conname) as name, k.contype as kind,
       -- one that is not valid for all rows, or refers to the table itself, follows the indexes
       not k.convalidated or k.confrelid = c.oid as late,
       pg_get_constraintdef(k.oid, true) as definition,
       -- the column it is written with, where Postgres then gives it the same name
       (select a.attname from pg_attribute a
        where a.attrelid = c.oid and k.conkey = array[a.attnum] and k.conname = concat_ws('_',
          c.relname, case when k.contype <> 'p' then a.attname end,
          case k.contype when 'p' then 'pkey' when 'u' then 'key' when 'f' then 'fkey' else 'check' end)
       ) as beside
from pg_class c join pg_constraint k on k.conrelid = c.oid
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and c.relkind in ('r', 'p') and k.contype in ('p', 'u', 'x', 'c', 'f')
order by position(k.contype in 'puxcf'), k.conname;

-- index
select c.oid::regclass::text as table, pg_get_indexdef(i.indexrelid, 0, true) as definition
from pg_class c join pg_index i on i.indrelid = c.oid
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype <> 'f')
order by i.indexrelid::regclass::text;

-- policy
select c.oid::regclass::text as table, quote_ident(p.polname) as name,
       p.polpermissive as permissive,
       case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
                     when 'd' then 'delete' else 'all' end as operation,
       array_to_string(p.polroles::regrole[], ', ') as roles,
       pg_get_expr(p.polqual, c.oid, true) as condition,
       pg_get_expr(p.polwithcheck, c.oid, true) as check
from pg_class c join pg_policy p on p.polrelid = c.oid
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
order by p.polroles::regrole[]::text, position(p.polcmd in 'rawd*'), p.polname;

-- grant
select c.oid::regclass::text as table, g.name as column, lower(a.privilege_type) as privilege,
       a.grantee::regrole::text as role
from pg_class c, lateral (
  select null as name, 0 as place, c.relacl as acl
  union all
  select quote_ident(attname), attnum, attacl from pg_attribute where attrelid = c.oid
) g, aclexplode(g.acl) a
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and c.relkind in ('r', 'p', 'v') and a.grantee <> c.relowner
order by a.grantee::regrole::text,
         array_position(array['SELECT', 'INSERT', 'UPDATE', 'DELETE'], a.privilege_type),
         a.privilege_type, g.place;

-- trigger
select c.oid::regclass::text as table, pg_get_triggerdef(t.oid, true) as definition
from pg_class c join pg_trigger t on t.tgrelid = c.oid
where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
  and not t.tgisinternal
order by t.tgname;
