-- SPDX-License-Identifier: Apache-2.0
-- What ingest drops past its time. Each function looks at so many rows from a cursor on and returns how many it dropped and where
-- to go on (null: that was all); -1: another process is at it. for_tenant null: all tenants. The cursor's form is the function's own.
-- A function that joins does so by look-up only, and its plan is never compiled (JIT).

-- What was accepted before this may be gone from the accept log: as far back as an audit can look.
CREATE TABLE ingest.retention_watermark (
    one    boolean     PRIMARY KEY DEFAULT true CHECK (one),
    since  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO ingest.retention_watermark DEFAULT VALUES;

CREATE FUNCTION ingest.audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT k.since FROM ingest.retention_watermark k $$;
GRANT EXECUTE ON FUNCTION ingest.audit_since() TO stentor_cli;

-- The time in an id: "ntf_" and a ULID, whose first ten characters are milliseconds. One expression, so that it is inlined.
CREATE FUNCTION ingest.id_time(id text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT to_timestamp((
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 5, 1)) - 1) * 35184372088832::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 6, 1)) - 1) * 1099511627776::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 7, 1)) - 1) * 34359738368::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 8, 1)) - 1) * 1073741824::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 9, 1)) - 1) * 33554432::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 10, 1)) - 1) * 1048576::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 11, 1)) - 1) * 32768::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 12, 1)) - 1) * 1024::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 13, 1)) - 1) * 32::float8 +
        (strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 14, 1)) - 1) * 1::float8) / 1000)
$$;

-- An accept row goes when it is published, older than `keep`, and every notification of it is sent or has ended. One that history
-- does not know (it never came, or was rebuilt without it) is kept for as long as a schedule may reach (366 days) and some weeks.
-- Read along the key; a page ends early at rows of many notifications, so that it stays short. The look-ups name the span of
-- their times, and plans are made for it: otherwise every month of history is in them.
-- `unknown`: notifications of dropped rows whose outcome is not known, so that it can be logged.
CREATE FUNCTION ingest.drop_accepted(for_tenant text, keep text, after text, at_most integer)
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

-- Drops the parts and chunks of batches that have ended, the oldest first; a draft has no end. A batch of which nothing is left is
-- marked (members_dropped). `go_on`: there are more.
CREATE FUNCTION ingest.drop_batch_members(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    over text[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    SELECT array_agg(o.id) INTO over FROM (
        SELECT b.id FROM ingest.batches b
        WHERE NOT b.members_dropped AND b.status IN ('completed', 'cancelled', 'failed')
          AND coalesce(b.ended_at, b.started_at, b.created_at) < cutoff AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
        ORDER BY coalesce(b.ended_at, b.started_at, b.created_at) LIMIT at_most) o;
    WITH chunks AS MATERIALIZED (
        SELECT c.batch_id, c.number FROM ingest.batch_chunks c WHERE c.batch_id = ANY (over) LIMIT at_most),
    parts AS MATERIALIZED (
        SELECT p.batch_id, p.part FROM ingest.batch_parts p WHERE p.batch_id = ANY (over) LIMIT at_most),
    gone AS (DELETE FROM ingest.batch_chunks d USING chunks WHERE (d.batch_id, d.number) = (chunks.batch_id, chunks.number) RETURNING 1),
    gone_parts AS (DELETE FROM ingest.batch_parts d USING parts WHERE (d.batch_id, d.part) = (parts.batch_id, parts.part) RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM gone_parts) INTO dropped;
    UPDATE ingest.batches b SET members_dropped = true
    WHERE b.id = ANY (over) AND NOT EXISTS (SELECT FROM ingest.batch_chunks c WHERE c.batch_id = b.id)
      AND NOT EXISTS (SELECT FROM ingest.batch_parts p WHERE p.batch_id = b.id);
    go_on := CASE WHEN dropped >= at_most OR cardinality(over) >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

CREATE FUNCTION ingest.drop_batches(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    old text[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    SELECT array_agg(o.id) INTO old FROM (
        SELECT b.id FROM ingest.batches b
        WHERE b.members_dropped AND b.status IN ('completed', 'cancelled', 'failed')
          AND coalesce(b.ended_at, b.started_at, b.created_at) < cutoff AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
        ORDER BY coalesce(b.ended_at, b.started_at, b.created_at) LIMIT at_most) o;
    DELETE FROM ingest.batches b WHERE b.id = ANY (old);
    GET DIAGNOSTICS dropped = ROW_COUNT;
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

GRANT EXECUTE ON FUNCTION ingest.drop_accepted(text, text, text, integer), ingest.drop_batch_members(text, text, text, integer),
    ingest.drop_batches(text, text, text, integer), ingest.drop_resends(text, text, text, integer) TO stentor_ingest;
