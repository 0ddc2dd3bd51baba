-- SPDX-License-Identifier: Apache-2.0
-- What history drops past its whole retention, by category. In schema stentor, because a rebuild replaces the schema archiver as a whole
-- and compares the two table by table.

-- Up to where each category was read: what is older was dropped, or had not ended. It is read from the beginning again once in 30 days,
-- for what has ended or come again since.
CREATE TABLE stentor.history_retention_cursor (
    category text COLLATE "C" PRIMARY KEY, -- '': rows without a category
    floor    timestamptz      NOT NULL,
    whole_at timestamptz      NOT NULL
);

-- `keep` is "marketing=24 months". A notification goes with its attempts when the time in its id is longer ago than that, it is
-- sent or has ended, and no event was folded into it for 31 days: longer than the log keeps an event, so what a rebuild makes of
-- the log has no such row either. Looks at at_most rows from a cursor on, oldest months first; -1: another process is at it. It names
-- the span of its page's times and is planned for it (a generic plan holds every month), joins by look-up only, never compiles (JIT).
CREATE FUNCTION stentor.drop_expired_history(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_category text := split_part(keep, '=', 1);
    cutoff timestamptz := now() - split_part(keep, '=', 2)::interval;
    pass text := 'whole';
    at_created timestamptz := '-infinity';
    at_id text := '';
    at_tenant text := '';
    known record;
    times timestamptz[];
    ids text[];
    tenants text[];
    old boolean[];
    seen integer;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('archiver.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    IF after <> '' THEN
        pass := split_part(after, '/', 1);
        at_created := 'epoch'::timestamptz + split_part(after, '/', 2)::bigint * interval '1 microsecond';
        at_id := split_part(after, '/', 3);
        at_tenant := split_part(after, '/', 4);
    ELSE
        SELECT * INTO known FROM stentor.history_retention_cursor w WHERE w.category = of_category;
        IF FOUND AND known.whole_at > now() - interval '30 days' THEN
            pass := 'part';
            at_created := known.floor;
        END IF;
    END IF;
    SELECT array_agg(p.created_at), array_agg(p.id), array_agg(p.tenant_id), array_agg(p.old) INTO times, ids, tenants, old
    FROM (SELECT n.created_at, n.id, n.tenant_id,
                 n.category IS NOT DISTINCT FROM nullif(of_category, '') AND (for_tenant IS NULL OR n.tenant_id = for_tenant)
                 AND n.status NOT IN ('queued', 'scheduled', 'rendering', 'sending')
                 AND n.updated_at < now() - interval '31 days' AS old
          FROM archiver.notifications n
          WHERE n.created_at >= at_created AND n.created_at < cutoff
            AND (n.created_at, n.id, n.tenant_id) > (at_created, at_id COLLATE "C", at_tenant COLLATE "C")
          ORDER BY n.created_at, n.id, n.tenant_id LIMIT at_most) p;
    seen := coalesce(cardinality(times), 0);
    -- The span is what keeps all but a month or two out of the plans.
    DELETE FROM archiver.delivery_attempts a USING unnest(times, ids, tenants, old) AS o (created_at, id, tenant_id, old)
    WHERE o.old AND a.created_at BETWEEN times[1] AND times[seen]
      AND a.created_at = o.created_at AND a.notification_id = o.id AND a.tenant_id = o.tenant_id;
    DELETE FROM archiver.notifications d USING unnest(times, ids, tenants, old) AS o (created_at, id, tenant_id, old)
    WHERE o.old AND d.created_at BETWEEN times[1] AND times[seen]
      AND d.created_at = o.created_at AND d.id = o.id AND d.tenant_id = o.tenant_id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    IF seen = at_most THEN
        go_on := pass || '/' || (extract(epoch FROM times[seen]) * 1000000)::bigint || '/' || ids[seen] || '/' || tenants[seen];
        RETURN NEXT;
        RETURN;
    END IF;
    IF for_tenant IS NULL THEN
        INSERT INTO stentor.history_retention_cursor AS w (category, floor, whole_at) VALUES (of_category, cutoff, now())
        ON CONFLICT (category) DO UPDATE
        SET floor = excluded.floor, whole_at = CASE WHEN pass = 'whole' THEN excluded.whole_at ELSE w.whole_at END;
    END IF;
    RETURN NEXT;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.drop_expired_history(text, text, text, integer) TO stentor_archiver;

-- How far back an audit can look in history: what was made before this may be gone (null: nothing is), and is not missed.
CREATE FUNCTION stentor.history_audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT max(w.floor) FROM stentor.history_retention_cursor w $$;
GRANT EXECUTE ON FUNCTION stentor.history_audit_since() TO stentor_cli;
