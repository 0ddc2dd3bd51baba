-- SPDX-License-Identifier: Apache-2.0
-- Who owns what the migrations make, and what a service's role may not do. (Every single right: migrations/privileges.tsv.)
SELECT no_plan();

SELECT has_role(role), isnt_superuser(role) FROM unnest(ARRAY['stentor_owner', 'stentor_ingest', 'stentor_gateway', 'stentor_renderer',
    'stentor_dispatcher', 'stentor_webhook', 'stentor_webhook_receiver', 'stentor_digest_flusher', 'stentor_archiver', 'stentor_order_saga', 'stentor_cli']) AS role;
SELECT schema_owner_is(schema, 'stentor_owner') FROM (SELECT DISTINCT schema FROM stentor.migrations) AS s ORDER BY 1;
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class AS c WHERE c.relnamespace::regnamespace::text IN (SELECT schema FROM stentor.migrations)
    AND c.relowner <> 'stentor_owner'::regrole$$, 'a superuser owns no table');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.pronamespace::regnamespace::text IN (SELECT schema FROM stentor.migrations)
    AND p.prosecdef AND NOT coalesce(p.proconfig, '{}') && ARRAY['search_path=pg_catalog, pg_temp']$$,
    'a definer function has a search_path that no caller can change');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.pronamespace::regnamespace::text IN (SELECT schema FROM stentor.migrations)
    AND p.prosecdef AND has_function_privilege('public', p.oid, 'EXECUTE')$$, 'and is granted to roles by name');
SELECT schema_privs_are('keys', 'stentor_webhook_receiver', ARRAY[]::text[], 'the receiver of callbacks does not enter the keys');
SELECT isnt_empty($$SELECT 1 WHERE NOT has_table_privilege('stentor_webhook', 'keys.data_keys', 'SELECT')$$, 'who posts to tenants'' endpoints reads no data key');
SELECT * FROM finish();
