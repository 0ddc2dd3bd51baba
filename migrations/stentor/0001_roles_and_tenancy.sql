-- SPDX-License-Identifier: Apache-2.0
-- Roles, and the one rule of tenancy that every tenant table uses.
-- Services log in with roles that cannot bypass row-level security. Passwords are set by the deployment.

CREATE SCHEMA IF NOT EXISTS stentor;

DO $$
DECLARE
    service text;
BEGIN
    FOREACH service IN ARRAY ARRAY['stentor_ingest', 'stentor_renderer', 'stentor_dispatcher', 'stentor_webhook_receiver',
                                   'stentor_digest_flusher', 'stentor_archiver', 'stentor_cli']
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = service) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', service);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA stentor TO %I', service);
    END LOOP;
END
$$;

-- The tenants whose rows this transaction may see and write: one id, or several separated by commas (a batch names all
-- of its tenants at once). Ids are [a-z0-9_-]{1,32}, so a comma cannot be part of one. Unset: none.
CREATE FUNCTION stentor.tenants() RETURNS text[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT string_to_array(current_setting('app.tenant_id', true), ',') $$;

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

-- Monthly partitions of a table partitioned by RANGE (created_at), from the month of `since` to that of `until`.
-- Services may call it: it makes what is missing and nothing else. Two at once wait for each other.
-- In UTC whatever the session's time zone is: a month added in a zone with summer time ends an hour early or late.
CREATE FUNCTION stentor.ensure_partitions(parent regclass, since timestamptz, until timestamptz) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    start_at timestamptz := date_trunc('month', since, 'UTC');
    name text;
    made integer := 0;
BEGIN
    IF until > since + interval '10 years' THEN
        RAISE EXCEPTION 'ensure_partitions: more than ten years asked for';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('stentor.ensure_partitions'), parent::oid::integer);
    WHILE start_at <= until LOOP
        name := (SELECT relname FROM pg_class WHERE oid = parent) || to_char(start_at AT TIME ZONE 'UTC', '"_y"YYYY"m"MM');
        IF NOT EXISTS (SELECT FROM pg_class c WHERE c.relname = name
                       AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = parent)) THEN
            EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
                (SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE c.oid = parent),
                name, parent, start_at, start_at + interval '1 month');
            made := made + 1;
        END IF;
        start_at := start_at + interval '1 month';
    END LOOP;
    RETURN made;
END
$$;
REVOKE ALL ON FUNCTION stentor.ensure_partitions(regclass, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.ensure_partitions(regclass, timestamptz, timestamptz) TO stentor_archiver, stentor_dispatcher;
