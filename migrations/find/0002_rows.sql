-- SPDX-License-Identifier: Apache-2.0
-- The rows of history that a list of notifications shows. In schema stentor, as archiver/0002 says.

-- Rows of the ids that were found, in their order (`n`, from 1), merged with what came after their period was archived. An id without a row
-- is left out. Each id is looked up by its class and time: one plan for all calls, and each look-up opens one partition.
CREATE FUNCTION stentor.notifications_found(of_tenant text, created timestamptz[], ids text[])
    RETURNS TABLE (n bigint, created_at timestamptz, id text, status text, reason_code text, reason text, channel text, category text,
                   priority text, template text, template_version text, recipient_id text, correlation_id text, batch_id text,
                   scheduled_for timestamptz, queued_at timestamptz, scheduled_at timestamptz, rendered_at timestamptz, sent_at timestamptz,
                   delivered_at timestamptz, opened_at timestamptz, clicked_at timestamptz, ended_at timestamptz, source_event_id text,
                   address_hash bytea)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
DECLARE
    lowest timestamptz := (SELECT min(c) FROM unnest(created) AS c);
    highest timestamptz := (SELECT max(c) FROM unnest(created) AS c);
BEGIN
    RETURN QUERY
    SELECT u.n, u.created_at, u.id, m.* FROM unnest(created, ids) WITH ORDINALITY AS u (created_at, id, n)
    CROSS JOIN LATERAL (
        SELECT (array_agg(b.status ORDER BY b.status_rank DESC))[1], (array_agg(b.reason_code ORDER BY b.status_rank DESC))[1],
               (array_agg(b.reason ORDER BY b.status_rank DESC))[1], max(b.channel), max(b.category), max(b.priority), max(b.template),
               max(b.template_version), max(b.recipient_id), max(b.correlation_id), max(b.batch_id), min(b.scheduled_for), min(b.queued_at),
               min(b.scheduled_at), min(b.rendered_at), min(b.sent_at), min(b.delivered_at), min(b.opened_at), min(b.clicked_at),
               min(b.ended_at), max(b.source_event_id), (array_agg(b.address_hash))[1]
        FROM (SELECT h.status, h.status_rank, h.reason_code, h.reason, h.channel, h.category, h.priority, h.template, h.template_version,
                     h.recipient_id, h.correlation_id, h.batch_id, h.scheduled_for, h.queued_at, h.scheduled_at, h.rendered_at, h.sent_at,
                     h.delivered_at, h.opened_at, h.clicked_at, h.ended_at, h.source_event_id, h.address_hash
              FROM archiver.notifications h
              WHERE h.created_at = u.created_at AND h.id = u.id AND h.tenant_id = of_tenant
                AND h.retention_class = stentor.retention_class(u.id) AND h.created_at >= lowest AND h.created_at <= highest
              UNION ALL
              SELECT l.status, l.status_rank, l.reason_code, l.reason, l.channel, l.category, l.priority, l.template, l.template_version,
                     l.recipient_id, l.correlation_id, l.batch_id, l.scheduled_for, l.queued_at, l.scheduled_at, l.rendered_at, l.sent_at,
                     l.delivered_at, l.opened_at, l.clicked_at, l.ended_at, l.source_event_id, l.address_hash
              FROM archiver.late_notifications l
              WHERE l.created_at = u.created_at AND l.id = u.id AND l.tenant_id = of_tenant
                AND l.retention_class = stentor.retention_class(u.id)) b
        HAVING count(*) > 0) m
    ORDER BY u.n;
END
$$;

-- The newest notifications of a tenant in a span of time, by what no index has. It looks at the newest `looked_at` rows of all tenants,
-- and at those of the same time as the last one: `seen_until` is that time, and NULL when it has seen all of the span. One row without an
-- id when there are none to show. A rebuilt or archived period's late rows (archiver.late_notifications) are not looked through.
CREATE FUNCTION stentor.notifications_within(of_tenant text, since timestamptz, until timestamptz, before_id text, of_status text,
                                             of_channel text, of_category text, most integer, looked_at integer)
    RETURNS TABLE (created_at timestamptz, id text, seen_until timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan
    SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
BEGIN
    RETURN QUERY
    WITH newest AS MATERIALIZED (
        SELECT h.created_at, h.id, h.tenant_id, h.status, h.channel, h.category FROM archiver.notifications h
        WHERE h.created_at >= since AND h.created_at <= until AND (h.created_at < until OR h.id < before_id COLLATE "C")
        ORDER BY h.created_at DESC FETCH FIRST (looked_at) ROWS WITH TIES),
    shown AS (SELECT w.created_at, w.id FROM newest w
              WHERE w.tenant_id = of_tenant AND (of_status IS NULL OR w.status = of_status)
                AND (of_channel IS NULL OR w.channel = of_channel) AND (of_category IS NULL OR w.category = of_category)
              ORDER BY w.created_at DESC, w.id DESC LIMIT most)
    SELECT s.created_at, s.id, o.seen_until
    FROM (SELECT CASE WHEN count(*) >= looked_at THEN min(w.created_at) END AS seen_until FROM newest w) o
    LEFT JOIN shown s ON true
    ORDER BY s.created_at DESC, s.id DESC;
END
$$;

GRANT EXECUTE ON FUNCTION stentor.notifications_found(text, timestamptz[], text[]),
    stentor.notifications_within(text, timestamptz, timestamptz, text, text, text, text, integer, integer) TO stentor_gateway;
