-- SPDX-License-Identifier: Apache-2.0
-- What notifications are found by: STATUS folded by gateway into entries that are only ever added. A key is 8 bytes of a keyed hash over
-- kind, tenant and value (common/find), so a row names no address and no caller's id. History has no index for these questions: its tables
-- are half of what Postgres does for a notification, and these may lag behind, be in another Postgres, or not be there at all.
-- An event that is folded again adds its entries again; find.search passes over the second. No index begins with the tenant
-- (people/0001 says why); the key has it.

CREATE SCHEMA find;

CREATE TABLE find.entries (
    tenant_id       text COLLATE "C" NOT NULL,
    kind            smallint         NOT NULL, -- common/find/find_key.h
    key             bigint           NOT NULL,
    created_at      timestamptz      NOT NULL, -- the time in the notification's id
    notification_id text COLLATE "C" NOT NULL
) PARTITION BY RANGE (created_at);
CREATE INDEX entries_key ON find.entries (key, created_at);
SELECT stentor.isolate('find.entries');

-- How far STATUS was folded, in the same transaction as the rows.
CREATE TABLE find.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

-- What STATUS had until then is in the entries. Also of times in which nothing happened: any gateway can say how fresh its answer is.
CREATE TABLE find.progress (
    projection text        PRIMARY KEY,
    as_of      timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Days of UTC from that of `since` to that of `until`, as partitions. Returns how many it made. Only gateway's projector calls it.
CREATE FUNCTION find.ensure_days(since timestamptz, until timestamptz) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    day_at timestamptz := date_trunc('day', since, 'UTC');
    day_name text;
    made integer := 0;
BEGIN
    IF NOT (isfinite(since) AND isfinite(until)) THEN
        RAISE EXCEPTION 'ensure_days: since and until must be finite'; -- a step from infinity stays there for ever
    ELSIF until > since + interval '10 years' OR until > now() + interval '7 days' THEN
        RAISE EXCEPTION 'ensure_days: more than ten years, or further ahead than a week';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('find.ensure_days'));
    WHILE day_at <= until LOOP
        day_name := to_char(day_at AT TIME ZONE 'UTC', '"entries_y"YYYY"m"MM"d"DD');
        IF to_regclass(format('find.%I', day_name)) IS NULL THEN
            EXECUTE format('CREATE TABLE find.%I PARTITION OF find.entries FOR VALUES FROM (%L) TO (%L)', day_name, day_at,
                           day_at + interval '1 day');
            made := made + 1;
        END IF;
        day_at := day_at + interval '1 day';
    END LOOP;
    RETURN made;
END
$$;

-- Drops the days that ended by then, at most `most`. Where it would wait for a reader or a flush for longer than 200 ms it fails, and the
-- caller asks again later.
CREATE FUNCTION find.drop_days(before timestamptz, most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '200ms'
    AS $$
DECLARE
    old name;
    dropped integer := 0;
BEGIN
    FOR old IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'find.entries'::regclass
          AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)')::timestamptz <= before
        ORDER BY 1 LIMIT most
    LOOP
        EXECUTE format('DROP TABLE find.%I', old);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;

-- The newest notifications that have one of the keys, from `since` on, before (until, before_id), each once. The caller's tenant's alone:
-- it runs with the caller's rights. One plan for all calls: making one looks at every day, which takes longer than the search.
CREATE FUNCTION find.search(keys bigint[], since timestamptz, until timestamptz, before_id text, most integer)
    RETURNS TABLE (created_at timestamptz, notification_id text)
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
BEGIN
    RETURN QUERY
    SELECT DISTINCT f.created_at, f.notification_id
    FROM unnest(keys) AS k (key)
    CROSS JOIN LATERAL (
        SELECT DISTINCT e.created_at, e.notification_id FROM find.entries e
        WHERE e.key = k.key AND e.created_at >= since AND e.created_at <= until
          AND (e.created_at < until OR e.notification_id < before_id COLLATE "C")
        ORDER BY e.created_at DESC, e.notification_id DESC LIMIT most) f
    ORDER BY 1 DESC, 2 DESC LIMIT most;
END
$$;

-- For `stentor rebuild find`, as the owner: what is made of the log from `since` on goes, and the projector begins again. Days before it
-- stay. The entries first: a flush that is under way has them before it moves the position.
CREATE FUNCTION find.rewind(since timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    day_name name;
BEGIN
    FOR day_name IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'find.entries'::regclass
          AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([^'']+)''\)')::timestamptz >= since
        ORDER BY 1
    LOOP
        EXECUTE format('TRUNCATE find.%I', day_name);
    END LOOP;
    DELETE FROM find.positions WHERE projection = 'find';
    DELETE FROM find.progress WHERE projection = 'find';
END
$$;

SELECT find.ensure_days(now() - interval '1 day', now() + interval '2 days');

GRANT USAGE ON SCHEMA find TO stentor_gateway, stentor_cli;
GRANT SELECT, INSERT ON find.entries TO stentor_gateway;
GRANT SELECT, INSERT, UPDATE ON find.positions, find.progress TO stentor_gateway;
GRANT SELECT ON find.entries, find.positions, find.progress TO stentor_cli;
GRANT EXECUTE ON FUNCTION find.ensure_days(timestamptz, timestamptz), find.drop_days(timestamptz, integer),
    find.search(bigint[], timestamptz, timestamptz, text, integer) TO stentor_gateway;
