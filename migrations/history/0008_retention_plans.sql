-- SPDX-License-Identifier: Apache-2.0
-- The same doors with plans that stay small: they name the span of their batch's times and are planned for it (a generic plan holds
-- every month), join by look-up only, and never compile (JIT).

CREATE OR REPLACE FUNCTION stentor.drop_expired_history(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_category text := split_part(keep, '=', 1);
    cutoff timestamptz := now() - split_part(keep, '=', 2)::interval;
    walk text := 'whole';
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
    IF NOT pg_try_advisory_xact_lock(hashtext('history.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    IF after <> '' THEN
        walk := split_part(after, '/', 1);
        at_created := 'epoch'::timestamptz + split_part(after, '/', 2)::bigint * interval '1 microsecond';
        at_id := split_part(after, '/', 3);
        at_tenant := split_part(after, '/', 4);
    ELSE
        SELECT * INTO known FROM stentor.history_walked w WHERE w.category = of_category;
        IF FOUND AND known.whole_at > now() - interval '30 days' THEN
            walk := 'part';
            at_created := known.floor;
        END IF;
    END IF;
    SELECT array_agg(p.created_at), array_agg(p.id), array_agg(p.tenant_id), array_agg(p.old) INTO times, ids, tenants, old
    FROM (SELECT n.created_at, n.id, n.tenant_id,
                 n.category IS NOT DISTINCT FROM nullif(of_category, '') AND (for_tenant IS NULL OR n.tenant_id = for_tenant)
                 AND n.status NOT IN ('queued', 'scheduled', 'rendering', 'sending')
                 AND n.updated_at < now() - interval '31 days' AS old
          FROM history.notifications n
          WHERE n.created_at >= at_created AND n.created_at < cutoff
            AND (n.created_at, n.id, n.tenant_id) > (at_created, at_id COLLATE "C", at_tenant COLLATE "C")
          ORDER BY n.created_at, n.id, n.tenant_id LIMIT at_most) p;
    seen := coalesce(cardinality(times), 0);
    -- The span is what keeps all but a month or two out of the plans.
    DELETE FROM history.delivery_attempts a USING unnest(times, ids, tenants, old) AS o (created_at, id, tenant_id, old)
    WHERE o.old AND a.created_at BETWEEN times[1] AND times[seen]
      AND a.created_at = o.created_at AND a.notification_id = o.id AND a.tenant_id = o.tenant_id;
    DELETE FROM history.notifications d USING unnest(times, ids, tenants, old) AS o (created_at, id, tenant_id, old)
    WHERE o.old AND d.created_at BETWEEN times[1] AND times[seen]
      AND d.created_at = o.created_at AND d.id = o.id AND d.tenant_id = o.tenant_id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    IF seen = at_most THEN
        go_on := walk || '/' || (extract(epoch FROM times[seen]) * 1000000)::bigint || '/' || ids[seen] || '/' || tenants[seen];
        RETURN NEXT;
        RETURN;
    END IF;
    IF for_tenant IS NULL THEN
        INSERT INTO stentor.history_walked AS w (category, floor, whole_at) VALUES (of_category, cutoff, now())
        ON CONFLICT (category) DO UPDATE
        SET floor = excluded.floor, whole_at = CASE WHEN walk = 'whole' THEN excluded.whole_at ELSE w.whole_at END;
    END IF;
    RETURN NEXT;
END
$$;
