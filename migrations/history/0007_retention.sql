-- SPDX-License-Identifier: Apache-2.0
-- What history drops past its whole retention, by category. In the schema stentor, because a rebuild swaps the whole schema
-- history for another one, and compares the two table by table.

-- How far each category was walked: what is older was dropped, or had no end. Walked from the beginning again once in 30 days,
-- for what has ended or come again since.
CREATE TABLE stentor.history_walked (
    category text COLLATE "C" PRIMARY KEY, -- '': rows whose category nobody told
    floor    timestamptz      NOT NULL,
    whole_at timestamptz      NOT NULL
);

-- `keep` is "marketing=24 months". A notification goes with its attempts when the time in its id is longer ago than that, it has
-- ended or left us, and nothing was folded into it for 31 days: longer than the log keeps an event, so what a rebuild makes of
-- the log has no such row either. Looks at at_most rows from a cursor on, oldest months first; -1: another process is at it.
CREATE FUNCTION stentor.drop_expired_history(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
DECLARE
    of_category text := split_part(keep, '=', 1);
    cutoff timestamptz := now() - split_part(keep, '=', 2)::interval;
    walk text := 'whole';
    at_created timestamptz := '-infinity';
    at_id text := '';
    at_tenant text := '';
    known record;
    seen bigint;
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
    WITH looked AS MATERIALIZED (
        SELECT n.created_at, n.id, n.tenant_id,
               n.category IS NOT DISTINCT FROM nullif(of_category, '') AND (for_tenant IS NULL OR n.tenant_id = for_tenant)
               AND n.status NOT IN ('queued', 'scheduled', 'rendering', 'sending')
               AND n.updated_at < now() - interval '31 days' AS old
        FROM history.notifications n
        WHERE (n.created_at, n.id, n.tenant_id) > (at_created, at_id COLLATE "C", at_tenant COLLATE "C") AND n.created_at < cutoff
        ORDER BY n.created_at, n.id, n.tenant_id LIMIT at_most),
    gone_attempts AS (
        DELETE FROM history.delivery_attempts a USING looked
        WHERE looked.old AND a.created_at = looked.created_at AND a.notification_id = looked.id AND a.tenant_id = looked.tenant_id),
    gone AS (
        DELETE FROM history.notifications d USING looked
        WHERE looked.old AND (d.created_at, d.id, d.tenant_id) = (looked.created_at, looked.id, looked.tenant_id)
        RETURNING 1),
    last AS (SELECT l.* FROM looked l ORDER BY l.created_at DESC, l.id DESC, l.tenant_id DESC LIMIT 1)
    SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM looked),
           walk || '/' || (extract(epoch FROM last.created_at) * 1000000)::bigint || '/' || last.id || '/' || last.tenant_id
    INTO dropped, seen, go_on FROM (SELECT 1) one LEFT JOIN last ON true;
    IF seen = at_most THEN
        RETURN NEXT;
        RETURN;
    END IF;
    go_on := NULL;
    IF for_tenant IS NULL THEN
        INSERT INTO stentor.history_walked AS w (category, floor, whole_at) VALUES (of_category, cutoff, now())
        ON CONFLICT (category) DO UPDATE
        SET floor = excluded.floor, whole_at = CASE WHEN walk = 'whole' THEN excluded.whole_at ELSE w.whole_at END;
    END IF;
    RETURN NEXT;
END
$$;
REVOKE ALL ON FUNCTION stentor.drop_expired_history(text, text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.drop_expired_history(text, text, text, integer) TO stentor_archiver;
