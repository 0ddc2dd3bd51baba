-- SPDX-License-Identifier: Apache-2.0
-- What digest-flusher drops, what it may trim of a full stream, and what the audit reads of it.

-- Drops what no delivery can ask for any more: DEFERRED keeps its events for 30 days. At most so many rows of a kind,
-- of windows a tenth of that, because their items go with them.
CREATE FUNCTION digest_flusher.forget(older_than interval, at_most integer) RETURNS bigint
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
    RETURN total + part;
END
$$;

-- How far every projection of history has read each stream: what may be trimmed of a stream that is nearly full.
CREATE FUNCTION digest_flusher.projected() RETURNS TABLE (stream text, sequence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT p.stream, min(p.sequence) FROM archiver.positions p GROUP BY p.stream $$;

-- The audit: which notifications wait for a time, across tenants, in order of work_id. An item in a window waits as a row of due work does.
CREATE FUNCTION digest_flusher.audit_due(from_id text, until_id text, for_tenant text, after text, at_most integer)
    RETURNS TABLE (work_id text, notification_id text, tenant_id text, due_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT * FROM (
        (SELECT w.work_id, w.notification_id, w.tenant_id, w.due_at FROM digest_flusher.due_work w
         WHERE w.work_id > after AND w.notification_id >= from_id AND w.notification_id < until_id
           AND (for_tenant IS NULL OR w.tenant_id = for_tenant)
         ORDER BY w.work_id LIMIT at_most)
        UNION ALL
        (SELECT i.work_id, i.notification_id, i.tenant_id, NULL FROM digest_flusher.digest_items i
         WHERE i.payload IS NOT NULL AND i.work_id > after AND i.notification_id >= from_id AND i.notification_id < until_id
           AND (for_tenant IS NULL OR i.tenant_id = for_tenant)
         ORDER BY i.work_id LIMIT at_most)) AS both_kinds
    ORDER BY work_id LIMIT at_most
$$;

-- The audit: the digests that were made here. No caller asked for these notifications, so the accept log does not know them.
CREATE FUNCTION digest_flusher.audit_digests(from_id text, until_id text, for_tenant text, after text, at_most integer)
    RETURNS TABLE (notification_id text, tenant_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT w.digest_id, w.tenant_id FROM digest_flusher.digest_windows w
    WHERE w.digest_id > after AND w.digest_id >= from_id AND w.digest_id < until_id
      AND (for_tenant IS NULL OR w.tenant_id = for_tenant)
    ORDER BY w.digest_id LIMIT at_most
$$;

GRANT EXECUTE ON FUNCTION digest_flusher.forget(interval, integer), digest_flusher.projected() TO stentor_digest_flusher;
GRANT EXECUTE ON FUNCTION digest_flusher.audit_due(text, text, text, text, integer),
    digest_flusher.audit_digests(text, text, text, text, integer) TO stentor_cli;
