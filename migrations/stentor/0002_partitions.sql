-- SPDX-License-Identifier: Apache-2.0
-- Monthly partitions of a table partitioned by RANGE (created_at), from the month of `since` to that of `until`.
-- It makes what is missing and nothing else; two callers at once wait for each other. Months are months of UTC whatever the
-- session's time zone is: a month added in a zone with summer time ends an hour early or late.
--
-- Postgres evaluates expressions of a table (its partition key, the checks of its default partition) when it makes a
-- partition, with the rights of this function's owner: a table that a caller made would run the caller's code as the owner. So
-- the table is one of these five, the owner's own, and one that the login may insert into. The last two are a rebuild's.
CREATE FUNCTION stentor.ensure_partitions(parent regclass, since timestamptz, until timestamptz) RETURNS integer
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
GRANT EXECUTE ON FUNCTION stentor.ensure_partitions(regclass, timestamptz, timestamptz) TO stentor_archiver, stentor_dispatcher;
