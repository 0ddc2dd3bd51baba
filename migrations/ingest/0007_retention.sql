-- SPDX-License-Identifier: Apache-2.0
-- What ingest drops past its time. Each door looks at so many rows from a cursor on and answers how many it dropped and where
-- to go on (null: that was all); -1: another process is at it. for_tenant null: all tenants. The cursor is the door's own.

-- What was accepted before this may be gone from the accept log: as far back as an audit can look.
CREATE TABLE ingest.kept (
    one    boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO ingest.kept DEFAULT VALUES;

CREATE FUNCTION ingest.audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT k.since FROM ingest.kept k $$;
REVOKE ALL ON FUNCTION ingest.audit_since() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ingest.audit_since() TO stentor_cli;

-- The time in an id: "ntf_" and a ULID.
CREATE FUNCTION ingest.id_time(id text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT 'epoch'::timestamptz + interval '1 millisecond'
           * sum((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 4 + n, 1)) - 1) * 32::numeric ^ (10 - n))::float8
    FROM generate_series(1, 10) n
$$;

-- An accept row goes when it is published, older than `keep`, and every notification of it has left us or ended. One that history
-- does not know (it never came, or was rebuilt without it) is kept for as long as a schedule may reach (366 days) and some weeks.
-- Read along the key; a batch ends early at rows of many notifications, so that it stays short.
CREATE FUNCTION ingest.drop_accepted(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    newest timestamptz;
    last bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    WITH page AS MATERIALIZED (
        SELECT l.accept_id, l.tenant_id, l.accepted_at, l.published_at, l.notification_ids,
               sum(cardinality(l.notification_ids)) OVER (ORDER BY l.accept_id) - cardinality(l.notification_ids) AS before
        FROM (SELECT * FROM ingest.accept_log a WHERE a.accept_id > coalesce(nullif(after, '')::bigint, -1)
              ORDER BY a.accept_id LIMIT at_most) l),
    looked AS MATERIALIZED (SELECT * FROM page p WHERE p.before < at_most),
    old AS MATERIALIZED (
        SELECT l.accept_id FROM looked l
        WHERE l.published_at IS NOT NULL AND l.accepted_at < cutoff AND (for_tenant IS NULL OR l.tenant_id = for_tenant)
          AND NOT EXISTS (
              SELECT FROM unnest(l.notification_ids) i (id)
              LEFT JOIN LATERAL (SELECT n.status FROM history.notifications n
                                 WHERE n.created_at = ingest.id_time(i.id) AND n.id = i.id AND n.tenant_id = l.tenant_id LIMIT 1) h ON true
              WHERE h.status IN ('queued', 'scheduled', 'rendering', 'sending')
                 OR (h.status IS NULL AND l.accepted_at > now() - interval '420 days'))),
    gone AS (DELETE FROM ingest.accept_log a USING old WHERE a.accept_id = old.accept_id RETURNING 1)
    SELECT (SELECT count(*) FROM gone), max(l.accept_id), max(l.accepted_at) INTO dropped, last, newest FROM looked l;
    IF dropped > 0 THEN
        UPDATE ingest.kept k SET since = cutoff WHERE k.since < cutoff;
    END IF;
    go_on := CASE WHEN newest < cutoff THEN last::text END;
    RETURN NEXT;
END
$$;

-- The parts and chunks of batches that have ended, and much later the batches. A draft has no end.
CREATE FUNCTION ingest.drop_batch_members(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    WITH over AS MATERIALIZED (
        SELECT b.id FROM ingest.batches b
        WHERE b.status IN ('completed', 'cancelled', 'failed') AND coalesce(b.ended_at, b.started_at, b.created_at) < now() - keep::interval
          AND (for_tenant IS NULL OR b.tenant_id = for_tenant)),
    chunks AS MATERIALIZED (
        SELECT c.batch_id, c.number FROM over JOIN ingest.batch_chunks c ON c.batch_id = over.id LIMIT at_most),
    parts AS MATERIALIZED (
        SELECT p.batch_id, p.part FROM over JOIN ingest.batch_parts p ON p.batch_id = over.id LIMIT at_most),
    gone AS (DELETE FROM ingest.batch_chunks d USING chunks WHERE (d.batch_id, d.number) = (chunks.batch_id, chunks.number) RETURNING 1),
    gone_parts AS (DELETE FROM ingest.batch_parts d USING parts WHERE (d.batch_id, d.part) = (parts.batch_id, parts.part) RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM gone_parts) INTO dropped;
    go_on := CASE WHEN dropped >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

CREATE FUNCTION ingest.drop_batches(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    WITH old AS MATERIALIZED (
        SELECT b.id FROM ingest.batches b
        WHERE b.status IN ('completed', 'cancelled', 'failed') AND coalesce(b.ended_at, b.started_at, b.created_at) < now() - keep::interval
          AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
          AND NOT EXISTS (SELECT FROM ingest.batch_chunks c WHERE c.batch_id = b.id)
          AND NOT EXISTS (SELECT FROM ingest.batch_parts p WHERE p.batch_id = b.id)
        LIMIT at_most),
    gone AS (DELETE FROM ingest.batches b USING old WHERE b.id = old.id RETURNING 1)
    SELECT count(*) FROM gone INTO dropped;
    go_on := CASE WHEN dropped >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

CREATE FUNCTION ingest.drop_resends(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    WITH old AS MATERIALIZED (
        SELECT r.tenant_id, r.event_identity FROM ingest.resends r
        WHERE r.noted_at < now() - keep::interval AND (for_tenant IS NULL OR r.tenant_id = for_tenant) LIMIT at_most),
    gone AS (DELETE FROM ingest.resends r USING old
             WHERE (r.tenant_id, r.event_identity) = (old.tenant_id, old.event_identity) RETURNING 1)
    SELECT count(*) FROM gone INTO dropped;
    go_on := CASE WHEN dropped >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION ingest.drop_accepted(text, text, text, integer), ingest.drop_batch_members(text, text, text, integer),
    ingest.drop_batches(text, text, text, integer), ingest.drop_resends(text, text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ingest.drop_accepted(text, text, text, integer), ingest.drop_batch_members(text, text, text, integer),
    ingest.drop_batches(text, text, text, integer), ingest.drop_resends(text, text, text, integer) TO stentor_ingest;
