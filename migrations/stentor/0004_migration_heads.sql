-- SPDX-License-Identifier: Apache-2.0
-- The last migration of each schema. Every service asks at its start: one that is older or newer than the database refuses to work on it.
CREATE FUNCTION stentor.migration_heads() RETURNS TABLE (schema text, number integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT m.schema, max(m.number) FROM stentor.migrations AS m GROUP BY m.schema $$;
GRANT EXECUTE ON FUNCTION stentor.migration_heads() TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher,
    stentor_digest_flusher, stentor_archiver, stentor_order_saga, stentor_cli;
