-- SPDX-License-Identifier: Apache-2.0
-- A service that was taken over gains nothing by a SECURITY DEFINER function: none takes a table of the caller's, and a function
-- made from now on can be called by those alone that it is granted to. stentor_owner owns them all, and is no superuser (bootstrap.sql).

-- Of the functions that are made later, in every schema, PUBLIC may call none.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- Postgres evaluates expressions of a table (its partition key, the checks of its default partition) when it makes a
-- partition, with the rights of this function's owner: a table that a caller made would run the caller's code as the owner. So
-- the table is one of these five, the owner's own, and one that the login may insert into. The last two are a rebuild's shadows.
CREATE OR REPLACE FUNCTION stentor.ensure_partitions(parent regclass, since timestamptz, until timestamptz) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    start_at timestamptz := date_trunc('month', since, 'UTC');
    space name;
    stem name;
    month_name text;
    made integer := 0;
BEGIN
    SELECT n.nspname, c.relname INTO space, stem
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = parent AND c.relkind = 'p' AND c.relpersistence = 'p' AND pg_get_userbyid(c.relowner) = current_user
      AND (n.nspname, c.relname) IN (('dispatcher', 'ledger'), ('archiver', 'notifications'), ('archiver', 'delivery_attempts'),
                                     ('archiver_rebuild', 'notifications'), ('archiver_rebuild', 'delivery_attempts'))
      AND has_table_privilege(session_user, c.oid, 'INSERT');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'ensure_partitions: it makes no months for the table ''%''', parent USING ERRCODE = 'insufficient_privilege';
    ELSIF NOT (isfinite(since) AND isfinite(until)) THEN
        RAISE EXCEPTION 'ensure_partitions: since and until must be finite'; -- a step from infinity stays there for ever
    ELSIF until > since + interval '10 years' THEN
        RAISE EXCEPTION 'ensure_partitions: more than ten years asked for';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('stentor.ensure_partitions'), parent::oid::integer);
    WHILE start_at <= until LOOP
        month_name := stem || to_char(start_at AT TIME ZONE 'UTC', '"_y"YYYY"m"MM');
        IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                       WHERE c.relname = month_name AND n.nspname = space) THEN
            EXECUTE format('CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%L) TO (%L)', space, month_name, space, stem,
                           start_at, start_at + interval '1 month');
            made := made + 1;
        END IF;
        start_at := start_at + interval '1 month';
    END LOOP;
    RETURN made;
END
$$;

-- Bound to pg_catalog when it is made: no search_path of a caller's makes it read something else. Policies call it with the
-- rights of who asks, so the services need it.
CREATE OR REPLACE FUNCTION stentor.tenants() RETURNS text[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.string_to_array(pg_catalog.current_setting('app.tenant_id', true), ',');
REVOKE ALL ON FUNCTION stentor.tenants(), stentor.isolate(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.tenants() TO stentor_ingest, stentor_renderer, stentor_dispatcher, stentor_webhook_receiver,
    stentor_digest_flusher, stentor_archiver, stentor_order_saga, stentor_cli;
