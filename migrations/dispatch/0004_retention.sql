-- SPDX-License-Identifier: Apache-2.0
-- What the ledger drops past its time: rows, never partitions. A month's table stays, empty, because a mail may have been
-- scheduled a year ahead, and its claims find their partition by the time in its id.

-- What ended before this may be gone from the ledger: as far back as an audit can look.
CREATE TABLE dispatch.kept (
    one    boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO dispatch.kept DEFAULT VALUES;

CREATE FUNCTION dispatch.audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT k.since FROM dispatch.kept k $$;
REVOKE ALL ON FUNCTION dispatch.audit_since() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dispatch.audit_since() TO stentor_cli;

-- An attempt goes when it has ended and that is longer ago than `keep`: longer than anything lives that a replay, a resend of a
-- dead letter (90 days) or a repair could bring back, which the ledger then has to refuse. What is claimed or parked stays.
-- Looks at at_most rows from a cursor on, oldest notifications first; -1: another process is at it.
CREATE FUNCTION dispatch.drop_ended(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    at_created timestamptz := '-infinity';
    at_id text := '';
    at_attempt smallint := 0;
    seen bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('dispatch.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    IF after <> '' THEN
        at_created := 'epoch'::timestamptz + split_part(after, '/', 1)::bigint * interval '1 microsecond';
        at_id := split_part(after, '/', 2);
        at_attempt := split_part(after, '/', 3)::smallint;
    END IF;
    WITH looked AS MATERIALIZED (
        SELECT l.created_at, l.notification_id, l.attempt,
               l.state IN ('sent', 'failed', 'deferred') AND l.finished_at < cutoff
               AND (for_tenant IS NULL OR l.tenant_id = for_tenant) AS old
        FROM dispatch.ledger l
        WHERE (l.created_at, l.notification_id, l.attempt) > (at_created, at_id COLLATE "C", at_attempt) AND l.created_at < cutoff
        ORDER BY l.created_at, l.notification_id, l.attempt LIMIT at_most),
    gone AS (
        DELETE FROM dispatch.ledger d USING looked
        WHERE looked.old AND (d.created_at, d.notification_id, d.attempt) = (looked.created_at, looked.notification_id, looked.attempt)
        RETURNING 1),
    last AS (SELECT l.* FROM looked l ORDER BY l.created_at DESC, l.notification_id DESC, l.attempt DESC LIMIT 1)
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM looked),
           (extract(epoch FROM last.created_at) * 1000000)::bigint || '/' || last.notification_id || '/' || last.attempt
    INTO dropped, seen, go_on FROM (SELECT 1) one LEFT JOIN last ON true;
    IF dropped > 0 THEN
        UPDATE dispatch.kept k SET since = cutoff WHERE k.since < cutoff;
    END IF;
    go_on := CASE WHEN seen = at_most THEN go_on END;
    RETURN NEXT;
END
$$;
REVOKE ALL ON FUNCTION dispatch.drop_ended(text, text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dispatch.drop_ended(text, text, text, integer) TO stentor_dispatcher;
