-- SPDX-License-Identifier: Apache-2.0
-- The last migration of each schema, for every service: one that is older or newer than the database says so and does nothing with it.
CREATE FUNCTION stentor.migration_heads() RETURNS TABLE (schema text, number integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT m.schema, max(m.number) FROM stentor.migrations AS m GROUP BY m.schema $$;
REVOKE EXECUTE ON FUNCTION stentor.migration_heads() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.migration_heads() TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher,
    stentor_digest_flusher, stentor_archiver, stentor_order_saga, stentor_cli;
