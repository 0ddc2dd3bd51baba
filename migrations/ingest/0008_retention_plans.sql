-- SPDX-License-Identifier: Apache-2.0
-- The same door with plans that stay small: it names the span of its batch's times and is planned for it (a generic plan holds
-- every month), joins by look-up only, and never compiles (JIT).

-- The time in an id: "ntf_" and a ULID, whose first ten characters are milliseconds. One expression, so that it is inlined.
CREATE OR REPLACE FUNCTION ingest.id_time(id text) RETURNS timestamptz
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

-- An accept row goes when it is published, older than `keep`, and every notification of it has left us or ended. One that history
-- does not know (it never came, or was rebuilt without it) is kept for as long as a schedule may reach (366 days) and some weeks.
-- Read along the key; a batch ends early at rows of many notifications, so that it stays short. The look-ups name the span of
-- their times, and plans are made for it: else every month of history is in them.
CREATE OR REPLACE FUNCTION ingest.drop_accepted(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
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
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
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

    SELECT array_agg(DISTINCT w.accept_id) INTO waiting
    FROM unnest(rows, tenants, ids, times) AS w (accept_id, tenant_id, id, at)
    LEFT JOIN LATERAL (SELECT n.status FROM history.notifications n
                       WHERE n.created_at BETWEEN first_at AND last_at AND n.created_at = w.at AND n.id = w.id AND n.tenant_id = w.tenant_id
                       LIMIT 1) h ON true
    WHERE h.status IN ('queued', 'scheduled', 'rendering', 'sending') OR (h.status IS NULL AND w.at > now() - interval '420 days');

    DELETE FROM ingest.accept_log l WHERE l.accept_id = ANY (old) AND NOT l.accept_id = ANY (coalesce(waiting, '{}'));
    GET DIAGNOSTICS dropped = ROW_COUNT;
    IF dropped > 0 THEN
        UPDATE ingest.kept k SET since = cutoff WHERE k.since < cutoff;
    END IF;
    go_on := CASE WHEN newest < cutoff THEN last::text END;
    RETURN NEXT;
END
$$;
