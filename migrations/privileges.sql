-- SPDX-License-Identifier: Apache-2.0
-- Who may do what in Stentor's database, one line a right; privileges.tsv is what it has to be (README.md says how to compare).
-- It reads; the grants themselves are in the migrations.
-- Owners' own rights are not listed, nor are partitions without a right of their own, nor what PUBLIC has of Postgres itself.
SET search_path = pg_catalog, pg_temp;
WITH space AS (
    SELECT oid, nspname, nspowner, nspacl FROM pg_namespace
    WHERE nspname IN ('stentor', 'keys', 'ingest', 'dispatcher', 'digest_flusher', 'archiver', 'archive', 'archive_drop', 'archive_restore', 'people', 'order_saga', 'feed', 'erasure', 'webhooks', 'gateway', 'find',
                      'stentor_outbox')),
role AS (SELECT * FROM pg_roles WHERE rolname LIKE 'stentor\_%'),
relation AS (
    SELECT c.*, c.oid::regclass::text AS name,
           CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' ELSE 'table' END AS kind
    FROM pg_class c JOIN space ON space.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')),
acl AS (
    SELECT 'database' AS kind, ''::text AS name, datdba AS owner, coalesce(datacl, acldefault('d', datdba)) AS acl
    FROM pg_database WHERE datname = current_database()
    UNION ALL
    SELECT 'schema', nspname::text, nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace
    WHERE nspname = 'public' OR oid IN (SELECT oid FROM space)
    UNION ALL
    SELECT kind, name, relowner, coalesce(relacl, acldefault(CASE kind WHEN 'sequence' THEN 's' ELSE 'r' END::"char", relowner)) FROM relation
    UNION ALL
    SELECT 'column', r.name || '.' || a.attname, r.relowner, a.attacl
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attacl IS NOT NULL
    UNION ALL
    SELECT 'function', p.oid::regprocedure::text, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_proc p JOIN space ON space.oid = p.pronamespace
    UNION ALL
    SELECT 'type', t.oid::regtype::text, t.typowner, t.typacl FROM pg_type t JOIN space ON space.oid = t.typnamespace WHERE t.typacl IS NOT NULL
    UNION ALL
    SELECT 'setting', parname, NULL::oid, paracl FROM pg_parameter_acl),
line (kind, name, who, rights) AS (
    SELECT 'role', rolname::text, '', concat_ws(' ', CASE WHEN rolcanlogin THEN 'login' END, CASE WHEN rolsuper THEN 'SUPERUSER' END,
           CASE WHEN rolcreaterole THEN 'CREATEROLE' END, CASE WHEN rolcreatedb THEN 'CREATEDB' END,
           CASE WHEN rolreplication THEN 'REPLICATION' END, CASE WHEN rolbypassrls THEN 'BYPASSRLS' END, rolconfig::text) FROM role
    UNION ALL
    SELECT 'member', role.rolname::text, m.roleid::regrole::text, '' FROM pg_auth_members m JOIN role ON role.oid = m.member
    UNION ALL
    SELECT kind, name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
           string_agg(a.privilege_type || CASE WHEN a.is_grantable THEN ' AND GRANT IT' ELSE '' END, ', ' ORDER BY a.privilege_type)
    FROM acl, aclexplode(acl) a
    WHERE a.grantee IS DISTINCT FROM owner AND (a.grantee = 0 OR EXISTS (SELECT FROM role WHERE role.oid = a.grantee) OR name <> '')
    GROUP BY kind, name, a.grantee
    UNION ALL
    SELECT 'schema', nspname::text, 'owner', nspowner::regrole::text FROM space
    UNION ALL
    SELECT kind, name, 'owner', concat_ws(' ', relowner::regrole::text, CASE WHEN relrowsecurity THEN (
               SELECT string_agg(format('%s of %s: %s', polname, CASE WHEN polroles = '{0}' THEN 'PUBLIC' ELSE polroles::regrole[]::text END,
                                 pg_get_expr(polqual, polrelid)), '; ' ORDER BY polname)
               FROM pg_policy WHERE polrelid = relation.oid) END)
    FROM relation WHERE NOT relispartition OR relowner <> (SELECT p.relowner FROM pg_class p JOIN pg_inherits i ON i.inhparent = p.oid
                                                          WHERE i.inhrelid = relation.oid)
    UNION ALL
    SELECT 'function', p.oid::regprocedure::text, 'owner',
           concat_ws(' ', p.proowner::regrole::text, CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END,
                     (SELECT string_agg(s, ' ' ORDER BY s) FROM unnest(p.proconfig) s WHERE s LIKE 'search_path=%'))
    FROM pg_proc p JOIN space ON space.oid = p.pronamespace
    UNION ALL
    SELECT 'default', coalesce(n.nspname::text, 'every schema'), d.defaclrole::regrole::text,
           format('%s: %s', d.defaclobjtype, d.defaclacl) FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace)
SELECT concat_ws(E'\t', kind, name, who, rights) FROM line ORDER BY concat_ws(E'\t', kind, name, who, rights) COLLATE "C";
