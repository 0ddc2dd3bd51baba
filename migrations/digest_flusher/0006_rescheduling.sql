-- SPDX-License-Identifier: Apache-2.0
-- A newer event about a subject supersedes what waits of an earlier one: a moved date. Events of one subject are ordered by
-- their own time, two of the same time by their ids, so it does not matter in which order they arrive. Rows from before this
-- file have no event's time: the time at which they were caused stands for it.

ALTER TABLE digest_flusher.due_work
    ADD event_at        timestamptz,
    ADD source_event_id text COLLATE "C";
ALTER TABLE digest_flusher.digest_items
    ADD event_at        timestamptz,
    ADD source_event_id text COLLATE "C";

-- One row for a key: what makes earlier work obsolete, and the newest event, either or both.
ALTER TABLE digest_flusher.cancellations
    ALTER before_at DROP NOT NULL,
    ALTER reason DROP NOT NULL,
    ADD newest_at     timestamptz,
    ADD newest_id     text COLLATE "C",
    ADD newest_reason text,
    ADD CHECK (before_at IS NOT NULL OR newest_at IS NOT NULL),
    ADD CHECK (num_nulls(before_at, reason) IN (0, 2) AND num_nulls(newest_at, newest_id, newest_reason) IN (0, 3));

-- Why work of that key does not go out: 'obsolete', 'rescheduled', or null: nothing stops it.
CREATE FUNCTION digest_flusher.stop_verdict(caused_at timestamptz, event_at timestamptz, source_event_id text,
                                            before_at timestamptz, newest_at timestamptz, newest_id text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE
        WHEN before_at > caused_at THEN 'obsolete'
        WHEN (coalesce(event_at, caused_at), coalesce(source_event_id, '') COLLATE "C") < (newest_at, newest_id COLLATE "C") THEN 'rescheduled'
    END
$$;
GRANT EXECUTE ON FUNCTION digest_flusher.stop_verdict(timestamptz, timestamptz, text, timestamptz, timestamptz, text)
    TO stentor_digest_flusher;

-- As before, and what was superseded while its row was being stored.
CREATE OR REPLACE FUNCTION digest_flusher.claim_work(lease interval, at_most integer)
    RETURNS TABLE (work_id text, due_at timestamptz, subject text, event_id text, payload bytea,
                   status text, reason_code text, detail text, window_id text)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH due AS MATERIALIZED (
        SELECT c.work_id, c.tenant_id, c.cancel_key, c.caused_at, c.event_at, c.source_event_id, c.recipient_id, c.category, c.channel,
               c.status IS NULL AND c.claimed_until IS NULL AS is_open
        FROM digest_flusher.due_work c
        WHERE c.due_at <= now() AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.due_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    decided AS (
        -- A deferral and its cancellation that were stored at the same moment did not see each other.
        SELECT due.work_id, digest_flusher.stop_verdict(due.caused_at, due.event_at, due.source_event_id, x.before_at, x.newest_at, x.newest_id)
                   AS stopped, x.reason, x.newest_reason,
               CASE WHEN due.is_open AND due.recipient_id IS NOT NULL
                    THEN digest_flusher.preference_verdict(due.tenant_id, due.recipient_id, due.category, due.channel) END AS verdict
        FROM due LEFT JOIN digest_flusher.cancellations x
            ON due.is_open AND x.tenant_id = due.tenant_id AND x.cancel_key = due.cancel_key)
    UPDATE digest_flusher.due_work w SET claimed_until = now() + lease,
        status = CASE WHEN decided.stopped IS NULL AND decided.verdict IS NULL THEN w.status ELSE 'suppressed' END,
        reason_code = coalesce(decided.stopped, decided.verdict, w.reason_code),
        detail = CASE decided.stopped WHEN 'obsolete' THEN decided.reason WHEN 'rescheduled' THEN decided.newest_reason ELSE w.detail END
    FROM decided WHERE w.work_id = decided.work_id
    RETURNING w.work_id, w.due_at, w.subject, w.event_id, w.payload, w.status, w.reason_code, w.detail, w.window_id
$$;

-- As before, and items that were superseded while they were being stored.
CREATE OR REPLACE FUNCTION digest_flusher.digest_freeze(lease interval, at_most integer, items_max integer, bytes_max bigint)
    RETURNS TABLE (tenant_id text, window_id text, flush_at timestamptz, frozen_at timestamptz, template text,
                   template_version text, locale text, verdict text, live bigint, listed boolean, payload bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    tenants text[];
    windows text[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w
        WHERE w.state IN ('open', 'flushing') AND w.due_at <= now() AND (w.claimed_until IS NULL OR w.claimed_until < now())
        ORDER BY w.due_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    frozen AS (
        UPDATE digest_flusher.digest_windows w SET state = 'flushing', claimed_until = now() + lease,
            frozen_at = coalesce(w.frozen_at, now()),
            verdict = CASE WHEN w.state = 'open'
                THEN nullif(digest_flusher.digest_verdict(w.tenant_id, w.recipient_id, w.category, w.channel), 'immediate')
                ELSE w.verdict END
        FROM due WHERE w.tenant_id = due.tenant_id AND w.window_id = due.window_id
        RETURNING w.tenant_id, w.window_id)
    SELECT array_agg(f.tenant_id), array_agg(f.window_id) INTO tenants, windows FROM frozen f;
    IF windows IS NULL THEN
        RETURN;
    END IF;
    -- An item and its cancellation that were stored at the same moment did not see each other. Only what is frozen here
    -- and now: what a dead process froze, it may have read.
    WITH gone AS MATERIALIZED (
        SELECT i.*, v.stopped, CASE v.stopped WHEN 'obsolete' THEN x.reason ELSE x.newest_reason END AS reason
        FROM unnest(tenants, windows) AS f(tenant_id, window_id)
        JOIN digest_flusher.digest_windows w ON w.tenant_id = f.tenant_id AND w.window_id = f.window_id AND w.frozen_at = now()
        JOIN digest_flusher.digest_items i ON i.tenant_id = f.tenant_id AND i.window_id = f.window_id AND i.payload IS NOT NULL
        JOIN digest_flusher.cancellations x ON x.tenant_id = i.tenant_id AND x.cancel_key = i.cancel_key
        CROSS JOIN LATERAL (SELECT digest_flusher.stop_verdict(i.caused_at, i.event_at, i.source_event_id, x.before_at, x.newest_at,
                                                               x.newest_id) AS stopped) AS v
        WHERE v.stopped IS NOT NULL),
    queued AS (
        INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,
                                    status, reason_code, detail)
        SELECT g.work_id, g.tenant_id, g.notification_id, 'digest', now(), g.subject, g.event_id, g.payload,
               'suppressed', g.stopped, g.reason FROM gone g
        ON CONFLICT DO NOTHING)
    UPDATE digest_flusher.digest_items i SET payload = NULL FROM gone g
    WHERE i.tenant_id = g.tenant_id AND i.window_id = g.window_id AND i.notification_id = g.notification_id;
    RETURN QUERY
    SELECT w.tenant_id, w.window_id, w.flush_at, w.frozen_at, w.template, w.template_version, w.locale, w.verdict,
           coalesce(i.live, 0), coalesce(i.at <= items_max AND i.bytes <= bytes_max, false), i.payload
    FROM unnest(tenants, windows) AS f(tenant_id, window_id)
    JOIN digest_flusher.digest_windows w ON w.tenant_id = f.tenant_id AND w.window_id = f.window_id
    LEFT JOIN LATERAL (
        SELECT d.payload, count(*) OVER () AS live, row_number() OVER oldest AS at, sum(length(d.payload)) OVER oldest AS bytes
        FROM digest_flusher.digest_items d
        WHERE d.tenant_id = w.tenant_id AND d.window_id = w.window_id AND d.payload IS NOT NULL
          AND (d.expires_at IS NULL OR d.expires_at > w.frozen_at)
        WINDOW oldest AS (ORDER BY d.accepted_at, d.notification_id)) AS i ON w.verdict IS NULL
    WHERE i.at IS NULL OR i.at = i.live OR (i.at <= items_max AND i.bytes <= bytes_max)
    ORDER BY w.tenant_id, w.window_id, i.at;
END
$$;
