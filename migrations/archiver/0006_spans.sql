-- SPDX-License-Identifier: Apache-2.0
-- What history removes past the span of its class, where nothing is archived: whole partitions. With object storage, removal is the archive's
-- alone, and the clean-up asks it for a run.

DROP FUNCTION stentor.drop_expired_history(text, text, text, integer);
DROP TABLE stentor.history_retention_cursor;

-- Up to where each class was removed.
CREATE TABLE stentor.history_removed (
    class text        COLLATE "C" PRIMARY KEY CHECK (class IN ('R', 'S', 'B')),
    until timestamptz NOT NULL
);

-- How far back an audit can look in history, by class: what was made before this may be gone (null: nothing is), and is not missed.
DROP FUNCTION stentor.history_audit_since();
CREATE FUNCTION stentor.history_audit_since() RETURNS TABLE (record timestamptz, standard timestamptz, brief timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT max(u.until) FILTER (WHERE u.class = 'R'), max(u.until) FILTER (WHERE u.class = 'S'), max(u.until) FILTER (WHERE u.class = 'B')
    FROM (SELECT r.class, r.until FROM stentor.history_removed r UNION ALL SELECT s.class, s.ends_at FROM stentor.sealed_periods s) u
    $$;
GRANT EXECUTE ON FUNCTION stentor.history_audit_since() TO stentor_cli;

-- The oldest partitions of a class that end from `since` to `until`, and are not sealed.
CREATE FUNCTION stentor.oldest_partitions(of_class text, since timestamptz, until timestamptz)
    RETURNS TABLE (starts_at timestamptz, ends_at timestamptz, notifications regclass, attempts regclass)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH found AS MATERIALIZED (SELECT p.* FROM archive.partitions('notifications') p WHERE p.class = of_class)
    SELECT n.starts_at, n.ends_at, n.leaf::regclass, a.leaf::regclass
    FROM found n JOIN found a ON a.ordinal = 1 AND a.starts_at = n.starts_at AND a.ends_at = n.ends_at
    WHERE n.ordinal = 0 AND n.starts_at >= since AND n.ends_at <= until
      AND NOT EXISTS (SELECT FROM stentor.sealed_periods s WHERE s.class = of_class AND s.starts_at < n.ends_at AND s.ends_at > n.starts_at)
    ORDER BY n.starts_at LIMIT 1
    $$;

-- One page of a partition in key order. What stays: what has not ended, and what an event was folded into within 31 days: longer than the log
-- keeps an event, so what a rebuild makes of the log has no row that was removed. Removes what does not stay, or only looks.
CREATE FUNCTION stentor.read_history_page(notifications regclass, attempts regclass, for_tenant text, removes boolean, at_most integer,
    INOUT at_created timestamptz, INOUT at_id text, INOUT at_tenant text, OUT seen integer, OUT stay integer, OUT removed bigint)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off
    AS $$
DECLARE
    times timestamptz[];
    ids text[];
    tenants text[];
    old boolean[];
BEGIN
    EXECUTE format('SELECT array_agg(p.created_at), array_agg(p.id), array_agg(p.tenant_id), array_agg(p.old) FROM ('
                   ' SELECT n.created_at, n.id, n.tenant_id, n.status NOT IN (''queued'', ''scheduled'', ''rendering'', ''sending'')'
                   '  AND n.updated_at < now() - interval ''31 days'' AND ($4 IS NULL OR n.tenant_id = $4) AS old FROM %s n'
                   ' WHERE (n.created_at, n.id, n.tenant_id) > ($1, $2 COLLATE "C", $3 COLLATE "C")'
                   ' ORDER BY n.created_at, n.id, n.tenant_id LIMIT $5) p', notifications)
        INTO times, ids, tenants, old USING at_created, at_id, at_tenant, for_tenant, at_most;
    seen := coalesce(cardinality(times), 0);
    stay := (SELECT count(*) FROM unnest(old) AS o WHERE NOT o);
    removed := 0;
    IF seen > 0 THEN
        at_created := times[seen];
        at_id := ids[seen];
        at_tenant := tenants[seen];
    END IF;
    IF removes AND stay < seen THEN
        EXECUTE format('DELETE FROM %s a USING unnest($1, $2, $3, $4) AS o (created_at, id, tenant_id, old) WHERE o.old'
                       ' AND a.created_at = o.created_at AND a.notification_id = o.id AND a.tenant_id = o.tenant_id', attempts)
            USING times, ids, tenants, old;
        EXECUTE format('DELETE FROM %s d USING unnest($1, $2, $3, $4) AS o (created_at, id, tenant_id, old) WHERE o.old'
                       ' AND d.created_at = o.created_at AND d.id = o.id AND d.tenant_id = o.tenant_id', notifications)
            USING times, ids, tenants, old;
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
END
$$;

-- `keep` is "R=84 months", counted from the end of a partition. One call is one page: a partition is looked through first, and dropped as a
-- whole where nothing in it has to stay; else, and for one tenant alone, its rows are deleted page by page. A partition that is read for
-- longer than 200 ms is left to the next pass. An event folded between the look and the drop goes with its partition, whose time is over.
-- -1: another process is at it. The cursor: look or rows, the partition's beginning, the last row, how many were looked at.
CREATE FUNCTION stentor.drop_expired_history(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
DECLARE
    of_class text := split_part(keep, '=', 1);
    cutoff timestamptz := now() - split_part(keep, '=', 2)::interval;
    place text[] := string_to_array(after, '/');
    since timestamptz := coalesce('epoch'::timestamptz + place[2]::bigint * interval '1 microsecond', '-infinity');
    looks boolean;
    page_rows integer;
    counted bigint;
    part record;
    page record;
BEGIN
    dropped := 0;
    IF NOT pg_try_advisory_xact_lock(hashtext('archiver.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    FOR turn IN 1 .. 20 LOOP -- as long as partitions are empty
        SELECT * INTO part FROM stentor.oldest_partitions(of_class, since, cutoff);
        EXIT WHEN NOT FOUND;
        IF part.starts_at > since OR cardinality(place) < 6 THEN
            place := '{}';
        END IF;
        looks := for_tenant IS NULL AND coalesce(place[1], '') <> 'rows';
        counted := coalesce(place[6]::bigint, 0);
        page_rows := CASE WHEN looks THEN 20 * at_most ELSE at_most END;
        SELECT * INTO page FROM stentor.read_history_page(part.notifications, part.attempts, for_tenant, NOT looks,
            page_rows, coalesce('epoch'::timestamptz + place[3]::bigint * interval '1 microsecond', '-infinity'),
            coalesce(place[4], ''), coalesce(place[5], ''));
        dropped := page.removed;
        counted := counted + page.seen;
        IF looks AND page.stay > 0 THEN
            go_on := format('rows/%s/-9000000000000000///0', (extract(epoch FROM part.starts_at) * 1000000)::bigint);
        ELSIF page.seen >= page_rows THEN
            go_on := format('%s/%s/%s/%s/%s/%s', CASE WHEN looks THEN 'look' ELSE 'rows' END,
                            (extract(epoch FROM part.starts_at) * 1000000)::bigint,
                            (extract(epoch FROM page.at_created) * 1000000)::bigint, page.at_id, page.at_tenant, counted);
        ELSE
            IF looks AND stentor.drop_partitions(part.notifications, part.attempts) THEN
                dropped := counted;
            END IF;
            since := part.ends_at;
            go_on := format('next/%s', (extract(epoch FROM since) * 1000000)::bigint);
        END IF;
        EXIT WHEN page.seen > 0;
    END LOOP;
    IF part.starts_at IS NULL THEN
        go_on := NULL;
        IF for_tenant IS NULL THEN
            INSERT INTO stentor.history_removed AS r VALUES (of_class, cutoff)
            ON CONFLICT (class) DO UPDATE SET until = greatest(r.until, excluded.until);
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.drop_expired_history(text, text, text, integer) TO stentor_archiver;

-- False: a reader or writer was in the way for 200 ms; nothing was changed.
CREATE FUNCTION stentor.drop_partitions(notifications regclass, attempts regclass) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms'
    AS $$
BEGIN
    EXECUTE format('DROP TABLE %s, %s', notifications, attempts);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- With object storage: the clean-up, also when a tenant asks for it, rolls the archive. Units are of all tenants. One request waits at most.
CREATE FUNCTION stentor.roll_archive(for_tenant text, keep text, after text, at_most integer) RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM archive.requests r WHERE r.kind = 'run' AND r.state = 'waiting') THEN
        PERFORM archive.request('run', '{}');
    END IF;
    RETURN QUERY SELECT 0::bigint, NULL::text;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.roll_archive(text, text, text, integer) TO stentor_archiver;
