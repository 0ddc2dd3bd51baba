-- SPDX-License-Identifier: Apache-2.0
-- The keys' own dump (common/keywork/keys_dump.h), apart from Postgres's backups.

ALTER TABLE keys.work ADD COLUMN dumped_at timestamptz, ADD COLUMN dumped_keys bigint;

CREATE FUNCTION keys.note_dump(at timestamptz, data_keys bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE keys.work SET dumped_at = at, dumped_keys = data_keys $$;

-- Of all tenants, for FETCH.
CREATE FUNCTION keys.read_dump() RETURNS refcursor
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    rows refcursor := 'dump_rows';
BEGIN
    OPEN rows NO SCROLL FOR
        SELECT tenant_id, subject, generation, wrapped, created_at, destroyed_at, restricted_by FROM keys.data_keys;
    RETURN rows;
END
$$;

GRANT EXECUTE ON FUNCTION keys.note_dump(timestamptz, bigint), keys.read_dump() TO stentor_ingest;
GRANT EXECUTE ON FUNCTION keys.read_dump() TO stentor_cli;
