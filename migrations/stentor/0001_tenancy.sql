-- SPDX-License-Identifier: Apache-2.0
-- The schema that all share, and the one rule of tenancy. The roles are made by bootstrap.sql: none of the services' can bypass
-- row-level security.

CREATE SCHEMA IF NOT EXISTS stentor;
GRANT USAGE ON SCHEMA stentor TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher, stentor_webhook_receiver,
    stentor_digest_flusher, stentor_archiver, stentor_order_saga, stentor_cli;

-- From here on PUBLIC may call no function of the owner's, in any schema: a migration grants each function to those that need it.
-- stentor_owner owns all SECURITY DEFINER functions ("definer functions") and is no superuser; none of them takes a table of the caller's.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- The tenants whose rows this transaction may see and write: one id, or several separated by commas (a batch names all
-- of its tenants at once). Ids are [a-z0-9_-]{1,32}, so a comma cannot be part of one. Unset: none.
-- The body is bound to pg_catalog when the function is made: no search_path of a caller makes it read something else. Policies call
-- it with the rights of the role that asks, so the services need it.
CREATE FUNCTION stentor.tenants() RETURNS text[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.string_to_array(pg_catalog.current_setting('app.tenant_id', true), ',');
GRANT EXECUTE ON FUNCTION stentor.tenants() TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher,
    stentor_webhook_receiver, stentor_digest_flusher, stentor_archiver, stentor_order_saga, stentor_cli;

-- Turns on row-level security for a table with a tenant_id column. The sub-select makes Postgres read the setting once
-- per statement, not once per row.
CREATE FUNCTION stentor.isolate(target regclass) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant_isolation ON %s USING (tenant_id = ANY ((SELECT stentor.tenants())::text[]))', target);
END
$$;
