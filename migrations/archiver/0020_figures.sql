-- SPDX-License-Identifier: Apache-2.0
-- Figures of a span for the API: usage with its costs, deliverability, how fast notifications are served. In schema stentor, as the questions of
-- 0002. A notification counts for when it was accepted. Archived periods are not counted; what came late for them neither. Partitions
-- outside of the span are not read.

-- What became of a tenant's notifications, by 'day' (of UTC), 'channel' or 'category'.
CREATE FUNCTION stentor.usage_counts(of_tenant text, since timestamptz, before timestamptz, by_what text)
    RETURNS TABLE (key text, notifications bigint, waiting bigint, sent bigint, delivered bigint, failed bigint, suppressed bigint,
                   bounced bigint, complained bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
        SET work_mem = '64MB'
    AS $$
BEGIN
    RETURN QUERY
    SELECT coalesce(to_char(c.day AT TIME ZONE 'UTC', 'YYYY-MM-DD'), c.name), c.notifications, c.waiting, c.sent, c.delivered, c.failed, c.suppressed,
           c.bounced, c.complained
    FROM (SELECT CASE WHEN by_what = 'day' THEN date_trunc('day', n.created_at, 'UTC') END AS day,
                 CASE by_what WHEN 'channel' THEN n.channel WHEN 'category' THEN coalesce(n.category, '') END AS name,
                 count(*) AS notifications, count(*) FILTER (WHERE n.status IN ('queued', 'scheduled', 'rendering', 'sending')) AS waiting,
                 count(n.sent_at) AS sent,
                 count(*) FILTER (WHERE n.delivered_at IS NOT NULL OR n.status IN ('delivered', 'opened', 'clicked', 'complained')) AS delivered,
                 count(*) FILTER (WHERE n.status = 'failed') AS failed,
                 count(*) FILTER (WHERE n.status IN ('suppressed', 'superseded')) AS suppressed,
                 count(*) FILTER (WHERE n.status = 'bounced') AS bounced, count(*) FILTER (WHERE n.status = 'complained') AS complained
          FROM archiver.notifications n
          WHERE n.tenant_id = of_tenant AND n.created_at >= since AND n.created_at < before
          GROUP BY 1, 2) c;
END
$$;

-- What its attempts cost, by currency: messages that a vendor took, and of these the ones without a price. Prices are looked up for groups of
-- equal attempts between two changes of the price table, not for each.
CREATE FUNCTION stentor.usage_costs(of_tenant text, since timestamptz, before timestamptz, by_what text)
    RETURNS TABLE (key text, currency text, messages bigint, segments bigint, cost_micros bigint, estimated_micros bigint, unpriced bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
        SET work_mem = '64MB'
    AS $$
BEGIN
    RETURN QUERY
    WITH changes AS MATERIALIZED (SELECT array_agg(DISTINCT u.valid_from ORDER BY u.valid_from) AS times FROM archive.unit_costs u),
    alike AS MATERIALIZED (
        SELECT CASE WHEN by_what = 'day' THEN date_trunc('day', d.created_at, 'UTC') END AS day,
               CASE by_what WHEN 'channel' THEN d.channel WHEN 'category' THEN coalesce(n.category, '') END AS name, d.channel, d.vendor,
               d.outcome, d.segments AS parts, d.cost_micros AS said, d.currency AS said_currency, d.calling_code, d.price_category,
               width_bucket(coalesce(d.started_at, d.created_at), (SELECT c.times FROM changes c)) AS prices,
               max(coalesce(d.started_at, d.created_at)) AS at, count(*) AS times
        FROM archiver.delivery_attempts d
        LEFT JOIN archiver.notifications n ON by_what = 'category' AND n.created_at = d.created_at AND n.id = d.notification_id
            AND n.tenant_id = d.tenant_id AND n.retention_class = d.retention_class AND n.created_at >= since AND n.created_at < before
        WHERE d.tenant_id = of_tenant AND d.created_at >= since AND d.created_at < before
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    SELECT coalesce(to_char(a.day AT TIME ZONE 'UTC', 'YYYY-MM-DD'), a.name), c.currency, sum(a.times * c.units)::bigint,
           coalesce(sum(a.times * a.parts) FILTER (WHERE c.units = 1), 0)::bigint,
           coalesce(sum(a.times * c.cost_micros), 0)::bigint, coalesce(sum(a.times * c.cost_micros) FILTER (WHERE c.estimated), 0)::bigint,
           coalesce(sum(a.times) FILTER (WHERE c.units = 1 AND c.cost_micros IS NULL), 0)::bigint
    FROM alike a
    CROSS JOIN LATERAL archive.attempt_cost(of_tenant, a.channel, a.vendor, a.outcome, a.at, a.parts, a.said, a.said_currency,
                                            a.calling_code, a.price_category) c
    GROUP BY 1, 2;
END
$$;

-- Bounces and complaints of e-mails that were sent, by 'domain' (From domain and whose mailbox) or by 'vendor' (one that took the mail). of_tenant
-- NULL: of all tenants.
CREATE FUNCTION stentor.deliverability(of_tenant text, since timestamptz, before timestamptz, by_what text)
    RETURNS TABLE (name text, provider text, sent bigint, delivered bigint, bounced bigint, complained bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
        SET work_mem = '64MB'
    AS $$
BEGIN
    IF by_what = 'domain' THEN
        RETURN QUERY
        SELECT coalesce(n.from_domain, ''), coalesce(n.provider, ''), count(*),
               count(*) FILTER (WHERE n.delivered_at IS NOT NULL OR n.status IN ('delivered', 'opened', 'clicked', 'complained')),
               count(*) FILTER (WHERE n.status = 'bounced'), count(*) FILTER (WHERE n.status = 'complained')
        FROM archiver.notifications n
        WHERE (of_tenant IS NULL OR n.tenant_id = of_tenant) AND n.created_at >= since AND n.created_at < before AND n.channel = 'email'
          AND n.sent_at IS NOT NULL
        GROUP BY 1, 2;
    ELSE
        RETURN QUERY
        SELECT d.vendor, ''::text, count(*),
               count(*) FILTER (WHERE n.delivered_at IS NOT NULL OR n.status IN ('delivered', 'opened', 'clicked', 'complained')),
               count(*) FILTER (WHERE n.status = 'bounced'), count(*) FILTER (WHERE n.status = 'complained')
        FROM archiver.delivery_attempts d
        JOIN archiver.notifications n ON n.created_at = d.created_at AND n.id = d.notification_id AND n.tenant_id = d.tenant_id
            AND n.retention_class = d.retention_class AND n.created_at >= since AND n.created_at < before
        WHERE (of_tenant IS NULL OR d.tenant_id = of_tenant) AND d.created_at >= since AND d.created_at < before AND d.channel = 'email'
          AND d.outcome IN ('accepted', 'delivered', 'bounce', 'complaint', 'opened', 'clicked')
        GROUP BY 1;
    END IF;
END
$$;

-- How fast the newest at_most notifications of a span were served: those that did not have to wait for a time. Served: sent, or ended in another
-- way, which has a reason. of_tenant NULL: of all tenants.
CREATE FUNCTION stentor.service_times(of_tenant text, since timestamptz, before timestamptz, target interval, at_most integer)
    RETURNS TABLE (notifications bigint, served bigint, sent bigint, failed bigint, open bigint, oldest timestamptz,
                   queued_p50 bigint, queued_p95 bigint, queued_p99 bigint, rendered_p50 bigint, rendered_p95 bigint, rendered_p99 bigint,
                   sent_p50 bigint, sent_p95 bigint, sent_p99 bigint, whole_p50 bigint, whole_p95 bigint, whole_p99 bigint) -- ms
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
        SET work_mem = '64MB'
    AS $$
DECLARE
    parts double precision[] := '{0.5,0.95,0.99}';
BEGIN
    RETURN QUERY
    SELECT t.count, t.served, t.sent, t.failed, t.open, t.oldest, t.q[1]::bigint, t.q[2]::bigint, t.q[3]::bigint, t.r[1]::bigint,
           t.r[2]::bigint, t.r[3]::bigint, t.s[1]::bigint, t.s[2]::bigint, t.s[3]::bigint, t.w[1]::bigint, t.w[2]::bigint, t.w[3]::bigint
    FROM (SELECT count(*) AS count, count(*) FILTER (WHERE least(m.sent_at, m.ended_at) - m.created_at <= target) AS served,
                 count(m.sent_at) AS sent, count(*) FILTER (WHERE m.status = 'failed') AS failed,
                 count(*) FILTER (WHERE m.sent_at IS NULL AND m.ended_at IS NULL) AS open, min(m.created_at) AS oldest,
                 percentile_disc(parts) WITHIN GROUP (ORDER BY 1000 * extract(epoch FROM m.queued_at - m.created_at)) AS q,
                 percentile_disc(parts) WITHIN GROUP (ORDER BY 1000 * extract(epoch FROM m.rendered_at - m.queued_at)) AS r,
                 percentile_disc(parts) WITHIN GROUP (ORDER BY 1000 * extract(epoch FROM m.sent_at - m.rendered_at)) AS s,
                 percentile_disc(parts) WITHIN GROUP (ORDER BY 1000 * extract(epoch FROM m.sent_at - m.created_at)) AS w
          FROM (SELECT n.* FROM archiver.notifications n
                WHERE (of_tenant IS NULL OR n.tenant_id = of_tenant) AND n.created_at >= since AND n.created_at < before
                  AND n.scheduled_for IS NULL AND n.scheduled_at IS NULL
                ORDER BY n.created_at DESC LIMIT at_most) m) t;
END
$$;

GRANT EXECUTE ON FUNCTION stentor.usage_counts(text, timestamptz, timestamptz, text), stentor.usage_costs(text, timestamptz, timestamptz, text),
    stentor.deliverability(text, timestamptz, timestamptz, text), stentor.service_times(text, timestamptz, timestamptz, interval, integer)
    TO stentor_gateway;

-- How far history has folded each stream, for an audit, also one of a process that may not read the schema.
CREATE FUNCTION stentor.history_positions() RETURNS TABLE (stream text, sequence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT p.stream, p.sequence FROM archiver.positions p WHERE p.projection = 'history'
    $$;
GRANT EXECUTE ON FUNCTION stentor.history_positions() TO stentor_gateway, stentor_cli;
