-- SPDX-License-Identifier: Apache-2.0
-- The accept log's retention knows that history may be gone before it: with object storage a class may be in Postgres for 30 days only.

-- An accept row goes when it is published, older than `keep`, and every notification of it is sent or has ended, or went from history with
-- its time: archived, or removed for its age, when it had an end. One that history does not know (it never came, or was rebuilt without it)
-- is kept for as long as a schedule may reach (366 days) and some weeks.
-- Read along the key; a page ends early at rows of many notifications, so that it stays short. The look-ups name the span of
-- their times, and plans are made for it: otherwise every month of history is in them.
-- `unknown`: notifications of dropped rows whose outcome is not known, so that it can be logged.
CREATE OR REPLACE FUNCTION ingest.drop_accepted(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text, unknown bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
        SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    newest timestamptz;
    last bigint;
    old bigint[];
    rows bigint[];
    tenants text[];
    ids text[];
    times timestamptz[];
    first_at timestamptz;
    last_at timestamptz;
    waiting bigint[];
    lost bigint[]; -- one element a notification
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after, 0::bigint;
        RETURN;
    END IF;
    WITH page AS (
        SELECT l.*, sum(cardinality(l.notification_ids)) OVER (ORDER BY l.accept_id) - cardinality(l.notification_ids) AS before
        FROM (SELECT a.accept_id, a.tenant_id, a.accepted_at, a.published_at, a.notification_ids FROM ingest.accept_log a
              WHERE a.accept_id > coalesce(nullif(after, '')::bigint, '-9223372036854775808') ORDER BY a.accept_id LIMIT at_most) l)
    SELECT max(p.accept_id), max(p.accepted_at),
           array_agg(p.accept_id) FILTER (WHERE p.published_at IS NOT NULL AND p.accepted_at < cutoff
                                            AND (for_tenant IS NULL OR p.tenant_id = for_tenant))
    INTO last, newest, old FROM page p WHERE p.before < at_most;

    SELECT array_agg(l.accept_id), array_agg(l.tenant_id), array_agg(i.id), array_agg(ingest.id_time(i.id)),
           min(ingest.id_time(i.id)), max(ingest.id_time(i.id))
    INTO rows, tenants, ids, times, first_at, last_at
    FROM ingest.accept_log l, unnest(l.notification_ids) AS i (id) WHERE l.accept_id = ANY (old);

    SELECT array_agg(DISTINCT w.accept_id) FILTER (WHERE h.status IS NOT NULL OR w.at > now() - interval '420 days'),
           array_agg(w.accept_id) FILTER (WHERE h.status IS NULL AND w.at <= now() - interval '420 days')
    INTO waiting, lost
    FROM unnest(rows, tenants, ids, times) AS w (accept_id, tenant_id, id, at)
    LEFT JOIN LATERAL (SELECT n.status FROM archiver.notifications n
                       WHERE n.created_at BETWEEN first_at AND last_at AND n.created_at = w.at AND n.id = w.id AND n.tenant_id = w.tenant_id
                       UNION ALL
                       SELECT l.status FROM archiver.late_notifications l
                       WHERE l.created_at = w.at AND l.id = w.id AND l.tenant_id = w.tenant_id
                       UNION ALL
                       SELECT 'archived' FROM stentor.sealed_periods s
                       WHERE s.class = stentor.retention_class(w.id) AND s.ends_at > w.at AND s.starts_at <= w.at
                       UNION ALL
                       SELECT 'removed' FROM stentor.history_removed r WHERE r.class = stentor.retention_class(w.id) AND r.until > w.at
                       LIMIT 1) h ON true
    WHERE h.status IN ('queued', 'scheduled', 'rendering', 'sending') OR h.status IS NULL;

    DELETE FROM ingest.accept_log l WHERE l.accept_id = ANY (old) AND NOT l.accept_id = ANY (coalesce(waiting, '{}'));
    GET DIAGNOSTICS dropped = ROW_COUNT;
    unknown := (SELECT count(*) FROM unnest(lost) AS x (accept_id) WHERE NOT x.accept_id = ANY (coalesce(waiting, '{}')));
    IF dropped > 0 THEN
        UPDATE ingest.retention_watermark k SET since = cutoff WHERE k.since < cutoff;
    END IF;
    go_on := CASE WHEN newest < cutoff THEN last::text END;
    RETURN NEXT;
END
$$;
