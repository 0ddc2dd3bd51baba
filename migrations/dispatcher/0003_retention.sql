-- SPDX-License-Identifier: Apache-2.0
-- What the ledger drops past its time: rows, never partitions. A month's table stays, empty, because a mail may have been
-- scheduled a year ahead, and its claims find their partition by the time in its id.

-- What ended before this may be gone from the ledger: as far back as an audit can look.
CREATE TABLE dispatcher.retention_watermark (
    one    boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO dispatcher.retention_watermark DEFAULT VALUES;

CREATE FUNCTION dispatcher.audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT k.since FROM dispatcher.retention_watermark k $$;
GRANT EXECUTE ON FUNCTION dispatcher.audit_since() TO stentor_cli;

-- An attempt goes when it has ended and that is longer ago than `keep`: longer than anything is kept that a replay, a resend of a
-- dead letter (90 days) or a repair could bring back, which the ledger then has to refuse. What is claimed or parked stays.
-- Looks at at_most rows from a cursor on, oldest notifications first; -1: another process is at it. It names the span of its page's
-- times and is planned for it (a generic plan holds every month), joins by look-up only, never compiles (JIT).
CREATE FUNCTION dispatcher.drop_ended(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    at_created timestamptz := '-infinity';
    at_id text := '';
    at_attempt smallint := 0;
    times timestamptz[];
    ids text[];
    attempts smallint[];
    old boolean[];
    seen integer;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('dispatcher.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    IF after <> '' THEN
        at_created := 'epoch'::timestamptz + split_part(after, '/', 1)::bigint * interval '1 microsecond';
        at_id := split_part(after, '/', 2);
        at_attempt := split_part(after, '/', 3)::smallint;
    END IF;
    SELECT array_agg(p.created_at), array_agg(p.notification_id), array_agg(p.attempt), array_agg(p.old)
    INTO times, ids, attempts, old
    FROM (SELECT l.created_at, l.notification_id, l.attempt,
                 coalesce(l.state IN ('sent', 'failed', 'deferred') AND l.finished_at < cutoff
                          AND (for_tenant IS NULL OR l.tenant_id = for_tenant), false) AS old
          FROM dispatcher.ledger l
          WHERE l.created_at >= at_created AND l.created_at < cutoff
            AND (l.created_at, l.notification_id, l.attempt) > (at_created, at_id COLLATE "C", at_attempt)
          ORDER BY l.created_at, l.notification_id, l.attempt LIMIT at_most) p;
    seen := coalesce(cardinality(times), 0);
    -- The span is what keeps all but a month or two out of the plan.
    DELETE FROM dispatcher.ledger d USING unnest(times, ids, attempts, old) AS o (created_at, notification_id, attempt, old)
    WHERE o.old AND d.created_at BETWEEN times[1] AND times[seen]
      AND d.created_at = o.created_at AND d.notification_id = o.notification_id AND d.attempt = o.attempt;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    IF dropped > 0 THEN
        UPDATE dispatcher.retention_watermark k SET since = cutoff WHERE k.since < cutoff;
    END IF;
    IF seen = at_most THEN
        go_on := (extract(epoch FROM times[seen]) * 1000000)::bigint || '/' || ids[seen] || '/' || attempts[seen];
    END IF;
    RETURN NEXT;
END
$$;
GRANT EXECUTE ON FUNCTION dispatcher.drop_ended(text, text, text, integer) TO stentor_dispatcher;
