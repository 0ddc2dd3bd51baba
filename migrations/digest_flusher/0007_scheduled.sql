-- SPDX-License-Identifier: Apache-2.0
-- What waits can be listed, and one notification cancelled.

ALTER TABLE digest_flusher.due_work
    ADD to_recipient text COLLATE "C", -- whom it is for; null: an inline address. recipient_id is null where no preference counts
    ADD attempt      smallint;         -- of a retry: which attempt it will be
CREATE INDEX due_work_tenant ON digest_flusher.due_work (tenant_id, due_at, work_id);

-- Notifications that were cancelled one by one, for longer than DEFERRED keeps its events: a deferral that is delivered again after its
-- row is gone is not stored again, and a cancellation that is asked for again gets the same answer.
CREATE TABLE digest_flusher.cancelled (
    tenant_id       text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    work_id         text COLLATE "C" NOT NULL,
    cancelled_at    timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, notification_id)
);
CREATE INDEX cancelled_at ON digest_flusher.cancelled (cancelled_at);
SELECT stentor.isolate('digest_flusher.cancelled');

-- What waits of a tenant, the first due first, behind a position: rows of due work and items of open windows, each with its request (of a
-- retry the content is not read). A row that has its end already, or is about to report it, does not wait.
CREATE FUNCTION digest_flusher.scheduled(of_tenant text, only_reason text, only_recipient text, only_key text, until timestamptz,
                                         after_due timestamptz, after_id text, at_most integer)
    RETURNS TABLE (work_id text, notification_id text, reason text, due_at timestamptz, cancellable boolean, recipient_id text,
                   channel text, category text, cancel_key text, window_id text, attempt smallint, request bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT * FROM (
        (SELECT w.work_id, w.notification_id, w.reason, w.due_at,
                w.claimed_until IS NULL AND w.due_at > now() AND w.reason IN ('schedule', 'quiet', 'limit', 'digest') AS cancellable,
                coalesce(w.to_recipient, w.recipient_id), nullif(w.channel, ''), nullif(w.category, ''), w.cancel_key, NULL AS window_id, w.attempt,
                CASE WHEN w.reason <> 'retry' THEN w.payload END
         FROM digest_flusher.due_work w
         WHERE w.tenant_id = of_tenant AND w.status IS NULL AND w.reason <> 'saga' AND (w.due_at, w.work_id) > (after_due, after_id)
           AND (only_reason IS NULL OR w.reason = only_reason) AND (only_recipient IS NULL OR coalesce(w.to_recipient, w.recipient_id) = only_recipient)
           AND (only_key IS NULL OR w.cancel_key = only_key) AND (until IS NULL OR w.due_at < until)
         ORDER BY w.due_at, w.work_id LIMIT at_most)
        UNION ALL
        (SELECT i.work_id, i.notification_id, 'digest', d.due_at, d.due_at > now(), d.recipient_id, d.channel, d.category, i.cancel_key,
                d.window_id, NULL, i.payload
         FROM digest_flusher.digest_windows d
         JOIN digest_flusher.digest_items i ON i.tenant_id = d.tenant_id AND i.window_id = d.window_id AND i.payload IS NOT NULL
         WHERE d.tenant_id = of_tenant AND d.state = 'open' AND (d.due_at, i.work_id) > (after_due, after_id)
           AND (only_reason IS NULL OR only_reason = 'digest') AND (only_recipient IS NULL OR d.recipient_id = only_recipient)
           AND (only_key IS NULL OR i.cancel_key = only_key) AND (until IS NULL OR d.due_at < until)
         ORDER BY d.due_at, i.work_id LIMIT at_most)) AS both_kinds
    ORDER BY due_at, work_id LIMIT at_most
$$;

-- Cancels one notification that waits: 'cancelled' (also when it was before), 'due' (its time has come: it goes out, or may have gone out),
-- 'ended' (something else has ended it) or 'absent' (nothing of it waits here). work_ids: under which it may wait; a deferral's id is
-- derived from the notification and the reason.
-- What is due by this database's clock is left alone though no claim of it may be seen: a claim is committed without waiting for the disk,
-- so after a crash of Postgres work that has gone out may look unclaimed, but never as if its time had not come.
CREATE FUNCTION digest_flusher.cancel_notification(of_tenant text, of_notification text, work_ids text[], why text)
    RETURNS TABLE (outcome text, due_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    waits record;
    item record;
BEGIN
    -- The lock serialises with a claim, and with the same cancellation.
    SELECT w.work_id, w.due_at, w.status, w.reason_code, w.claimed_until INTO waits FROM digest_flusher.due_work w
    WHERE w.work_id = ANY (work_ids) AND w.tenant_id = of_tenant AND w.notification_id = of_notification
    ORDER BY w.work_id LIMIT 1 FOR UPDATE;
    IF EXISTS (SELECT FROM digest_flusher.cancelled c WHERE c.tenant_id = of_tenant AND c.notification_id = of_notification) THEN
        RETURN QUERY SELECT 'cancelled', NULL::timestamptz;
        RETURN;
    END IF;
    IF waits.work_id IS NOT NULL THEN
        IF waits.status IS NOT NULL THEN
            RETURN QUERY SELECT 'ended', waits.due_at;
        ELSIF waits.claimed_until IS NOT NULL OR waits.due_at <= now() THEN
            RETURN QUERY SELECT 'due', waits.due_at;
        ELSE
            UPDATE digest_flusher.due_work w SET status = 'suppressed', reason_code = 'cancelled', detail = why, due_at = now()
            WHERE w.work_id = waits.work_id;
            INSERT INTO digest_flusher.cancelled (tenant_id, notification_id, work_id) VALUES (of_tenant, of_notification, waits.work_id);
            RETURN QUERY SELECT 'cancelled', waits.due_at;
        END IF;
        RETURN;
    END IF;
    -- The window's lock serialises with a freeze; the item is read again behind it.
    SELECT i.work_id, i.window_id, d.due_at INTO item FROM digest_flusher.digest_items i
    JOIN digest_flusher.digest_windows d ON d.tenant_id = i.tenant_id AND d.window_id = i.window_id
    WHERE i.work_id = ANY (work_ids) AND i.payload IS NOT NULL AND i.tenant_id = of_tenant AND i.notification_id = of_notification
    ORDER BY i.work_id LIMIT 1 FOR UPDATE OF d;
    IF item.work_id IS NULL THEN
        RETURN QUERY SELECT 'absent', NULL::timestamptz;
        RETURN;
    END IF;
    WITH gone AS MATERIALIZED (
        SELECT i.* FROM digest_flusher.digest_items i
        JOIN digest_flusher.digest_windows d ON d.tenant_id = i.tenant_id AND d.window_id = i.window_id
        WHERE i.tenant_id = of_tenant AND i.window_id = item.window_id AND i.notification_id = of_notification AND i.payload IS NOT NULL
          AND d.state = 'open' AND d.due_at > now()),
    queued AS (
        INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,
                                             status, reason_code, detail)
        SELECT g.work_id, g.tenant_id, g.notification_id, 'digest', now(), g.subject, g.event_id, g.payload, 'suppressed', 'cancelled', why
        FROM gone g ON CONFLICT DO NOTHING),
    emptied AS (
        UPDATE digest_flusher.digest_items i SET payload = NULL FROM gone g
        WHERE i.tenant_id = g.tenant_id AND i.window_id = g.window_id AND i.notification_id = g.notification_id)
    INSERT INTO digest_flusher.cancelled (tenant_id, notification_id, work_id) SELECT g.tenant_id, g.notification_id, g.work_id FROM gone g;
    IF FOUND OR EXISTS (SELECT FROM digest_flusher.cancelled c WHERE c.tenant_id = of_tenant AND c.notification_id = of_notification) THEN
        RETURN QUERY SELECT 'cancelled', item.due_at;
    ELSE
        RETURN QUERY SELECT 'due', item.due_at;
    END IF;
END
$$;

-- As before, and what was cancelled.
CREATE OR REPLACE FUNCTION digest_flusher.forget(older_than interval, at_most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    total bigint;
    part bigint;
BEGIN
    WITH old AS MATERIALIZED (
        SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w WHERE w.state = 'flushed' AND w.flushed_at < now() - older_than
        ORDER BY w.flushed_at LIMIT greatest(at_most / 10, 1) FOR UPDATE SKIP LOCKED),
    items AS (DELETE FROM digest_flusher.digest_items i USING old WHERE i.tenant_id = old.tenant_id AND i.window_id = old.window_id),
    gone AS (DELETE FROM digest_flusher.digest_windows w USING old WHERE w.tenant_id = old.tenant_id AND w.window_id = old.window_id RETURNING 1)
    SELECT count(*) INTO total FROM gone;
    WITH old AS MATERIALIZED (
        SELECT c.tenant_id, c.cancel_key FROM digest_flusher.cancellations c WHERE c.recorded_at < now() - older_than
        LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM digest_flusher.cancellations c USING old WHERE c.tenant_id = old.tenant_id AND c.cancel_key = old.cancel_key RETURNING 1)
    SELECT count(*) INTO part FROM gone;
    total := total + part;
    WITH old AS MATERIALIZED (
        SELECT e.work_id FROM digest_flusher.emitted e WHERE e.emitted_at < now() - older_than LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM digest_flusher.emitted e USING old WHERE e.work_id = old.work_id RETURNING 1)
    SELECT count(*) INTO part FROM gone;
    total := total + part;
    WITH old AS MATERIALIZED (
        SELECT c.tenant_id, c.notification_id FROM digest_flusher.cancelled c WHERE c.cancelled_at < now() - older_than
        LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM digest_flusher.cancelled c USING old
             WHERE c.tenant_id = old.tenant_id AND c.notification_id = old.notification_id RETURNING 1)
    SELECT count(*) INTO part FROM gone;
    RETURN total + part;
END
$$;

GRANT SELECT ON digest_flusher.cancelled TO stentor_digest_flusher;
GRANT USAGE ON SCHEMA digest_flusher TO stentor_gateway;
GRANT EXECUTE ON FUNCTION digest_flusher.scheduled(text, text, text, text, timestamptz, timestamptz, text, integer),
    digest_flusher.cancel_notification(text, text, text[], text) TO stentor_gateway;
