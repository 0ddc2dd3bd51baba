-- SPDX-License-Identifier: Apache-2.0
-- Gives what a superuser, or the role that ran the migrations, owns in Stentor's schemas to the role that owns it from now on.
-- Part of the bootstrap: a database that was restored from a backup without its owners belongs to the superuser who restored it, and so
-- would every SECURITY DEFINER function. What another role made there stays its own: its functions must not run with the owner's rights.
-- `SET stentor.new_owner = 'shop'; SET stentor.schemas = 'stentor,stentor_outbox'` before it: the same for an application's database.
-- Locks each table for a moment; when a service holds one for 5 s it gives up and changes nothing.

SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '5s';

DO $$
DECLARE
    new_owner constant name := coalesce(nullif(current_setting('stentor.new_owner', true), ''), 'stentor_owner');
    spaces constant text[] := string_to_array(coalesce(nullif(current_setting('stentor.schemas', true), ''),
        'stentor,keys,ingest,dispatcher,digest_flusher,archive,archive_drop,archive_restore,archiver,people,order_saga,feed,erasure,webhooks,gateway,find,archiver_old,archiver_rebuild'), ',');
    former constant oid[] := ARRAY(SELECT oid FROM pg_roles WHERE rolsuper
                                   UNION SELECT relowner FROM pg_class WHERE oid = to_regclass('stentor.migrations'));
    thing record;
BEGIN
    FOR thing IN
        WITH space AS (SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname = ANY (spaces)),
        owned AS (
            SELECT 1 AS rank, 'SCHEMA' AS kind, quote_ident(nspname) AS name, nspowner AS owner FROM space
            UNION ALL
            SELECT 2, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                                     WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
                   c.oid::regclass::text, c.relowner
            FROM pg_class c JOIN space ON space.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
               OR (c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                                                   AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i'))) -- a column's goes with its table
            UNION ALL
            SELECT 3, 'ROUTINE', p.oid::regprocedure::text, p.proowner FROM pg_proc p JOIN space ON space.oid = p.pronamespace
            UNION ALL
            SELECT 4, 'TYPE', t.oid::regtype::text, t.typowner FROM pg_type t JOIN space ON space.oid = t.typnamespace
            WHERE t.typtype IN ('d', 'e', 'r')
               OR (t.typtype = 'c' AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')))
        SELECT * FROM owned WHERE owner = ANY (former) AND owner <> quote_ident(new_owner)::regrole ORDER BY rank, name
    LOOP
        BEGIN
            EXECUTE format('ALTER %s %s OWNER TO %I', thing.kind, thing.name, new_owner);
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            RAISE EXCEPTION '% is in use, nothing was changed: try again, or stop the services meanwhile', thing.name
                USING ERRCODE = 'lock_not_available';
        END;
    END LOOP;
END
$$;
