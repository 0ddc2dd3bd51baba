-- SPDX-License-Identifier: Apache-2.0
-- Tenants are kept apart by Postgres itself, in every table that has one.
SELECT no_plan();

CREATE TEMP TABLE tenant_tables ON COMMIT DROP AS
    SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relrowsecurity AS isolated
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE n.nspname IN (SELECT schema FROM stentor.migrations) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND a.attname = 'tenant_id' AND NOT a.attisdropped;
SELECT cmp_ok(count(*), '>=', 25::bigint, 'tables with a tenant are found') FROM tenant_tables;
SELECT ok(isolated, name || ' has row-level security') FROM tenant_tables ORDER BY name;
SELECT policies_are(split_part(name, '.', 1), split_part(name, '.', 2), ARRAY['tenant_isolation'], name || ' has the policy and no other')
    FROM tenant_tables ORDER BY name;

-- What a service sees and may write, as the transaction names its tenants.
CREATE FUNCTION pg_temp.sees(service text, tenants text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    PERFORM set_config('app.tenant_id', tenants, true), set_config('role', service, true);
    EXECUTE query INTO answer;
    PERFORM set_config('role', 'none', true);
    RETURN answer;
END
$$;
INSERT INTO ingest.idempotency_keys
    SELECT tenant, 'evt', 'key', '\x00', 202, '', now() FROM unnest(ARRAY['acme', 'beta', 'gamma']) AS tenant;
SELECT is(pg_temp.sees('stentor_ingest', 'acme', 'SELECT string_agg(tenant_id, '' '') FROM ingest.idempotency_keys'), 'acme',
    'a service sees the rows of its tenant');
SELECT is(pg_temp.sees('stentor_ingest', 'acme,beta', 'SELECT count(*) FROM ingest.idempotency_keys'), '2', 'or of the tenants of its batch');
SELECT is(pg_temp.sees('stentor_ingest', '', 'SELECT count(*) FROM ingest.idempotency_keys'), '0', 'and none where no tenant is named');
SELECT throws_ok($$SELECT pg_temp.sees('stentor_ingest', 'acme', 'INSERT INTO ingest.idempotency_keys
    VALUES (''beta'', ''evt'', ''other'', ''\x00'', 202, '''', now()) RETURNING tenant_id')$$, '42501', NULL, 'it writes for no other tenant');
SELECT * FROM finish();
