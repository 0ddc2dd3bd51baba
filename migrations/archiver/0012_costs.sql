-- SPDX-License-Identifier: Apache-2.0
-- What an attempt costs: what the vendor says, in its answer or in a later callback, stands in history; what it does not say is estimated
-- from archive.unit_costs whenever it is asked for, so a price that is put later counts for what was sent before. Rows of before have NULL
-- there; so have archived objects of before, which have no such columns.

ALTER TABLE archiver.delivery_attempts
    ADD COLUMN segments integer,                 -- as the vendor counts them, else as we do
    ADD COLUMN cost_micros bigint,               -- as the vendor says; NULL: it says nothing
    ADD COLUMN currency text COLLATE "C",
    ADD COLUMN calling_code text COLLATE "C",    -- of the number that it went to: '43', '1242'
    ADD COLUMN price_category text COLLATE "C";  -- as what the vendor bills it: 'marketing'; 'free': nothing is billed
ALTER TABLE archiver.late_attempts
    ADD COLUMN segments integer,
    ADD COLUMN cost_micros bigint,
    ADD COLUMN currency text COLLATE "C",
    ADD COLUMN calling_code text COLLATE "C",
    ADD COLUMN price_category text COLLATE "C";

-- A country is also named by the beginning of its numbers ('+43', '+1242'); the longest that fits counts. Categories are the vendor's.
ALTER TABLE archive.unit_costs
    ADD COLUMN category text COLLATE "C" NOT NULL DEFAULT '*' CHECK (category ~ '^([a-z0-9_-]{1,64}|\*)$'),
    DROP CONSTRAINT unit_costs_country_check,
    ADD CONSTRAINT unit_costs_country_check CHECK (country ~ '^([A-Z]{2}|\+[1-9][0-9]{0,3}|\*)$'),
    DROP CONSTRAINT unit_costs_pkey,
    ADD PRIMARY KEY (channel, vendor, country, category, tenant, valid_from);

-- What one attempt costs. units: 1 when the vendor took the message, else 0. estimated: by the price table; NULL: there is no price. The
-- tenant's own price goes before '*', then the longest beginning of the number, then the category's before '*', then the newest.
CREATE FUNCTION archive.attempt_cost(of_tenant text, of_channel text, of_vendor text, outcome text, at timestamptz, segments integer,
                                     said_micros bigint, said_currency text, calling_code text, price_category text)
    RETURNS TABLE (units integer, cost_micros bigint, currency text, estimated boolean)
    LANGUAGE sql STABLE
    AS $$
    SELECT t.units, CASE WHEN said_micros IS NOT NULL THEN said_micros WHEN t.units = 0 OR price_category = 'free' THEN 0
                         ELSE c.micros * CASE c.unit WHEN 'segment' THEN coalesce(segments, 1) ELSE 1 END END,
           CASE WHEN said_micros IS NOT NULL THEN said_currency ELSE c.currency END,
           CASE WHEN said_micros IS NOT NULL OR t.units = 0 OR price_category = 'free' THEN false
                WHEN c.micros IS NOT NULL THEN true END
    FROM (SELECT (outcome IN ('accepted', 'delivered', 'bounce', 'complaint', 'opened', 'clicked'))::integer AS units) t
    LEFT JOIN LATERAL (
        SELECT u.micros, u.unit, u.currency FROM archive.unit_costs u
        WHERE u.channel = of_channel AND u.vendor = of_vendor AND u.tenant IN (of_tenant, '*') AND u.valid_from <= at
          AND (u.country = '*' OR starts_with('+' || calling_code, u.country)) AND u.category IN (coalesce(price_category, '*'), '*')
        ORDER BY u.tenant = '*', length(u.country) * (u.country <> '*')::integer DESC, u.category = '*', u.valid_from DESC LIMIT 1) c ON true
    $$;

-- ---- one notification ----
-- In schema stentor, as the questions of 0002: for gateway and the command line. Merged with what came after its period was archived.
CREATE FUNCTION stentor.notification_attempts(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (attempt_number smallint, vendor text, outcome text, code text, enhanced_code text, reply text, vendor_message_id text,
                   was_unknown boolean, started_at timestamptz, finished_at timestamptz, segments integer, cost_micros bigint,
                   currency text, cost_estimated boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
    RETURN QUERY
    SELECT a.attempt_number, a.vendor, a.outcome, a.code, a.enhanced_code, a.reply, a.vendor_message_id, a.was_unknown, a.started_at,
           a.finished_at, a.all_segments, c.cost_micros, c.currency, c.estimated
    FROM (
        SELECT DISTINCT ON (b.attempt_number) b.*, max(b.segments) OVER one AS all_segments,
               first_value(b.cost_micros) OVER priced AS said_micros, first_value(b.currency) OVER priced AS said_currency,
               max(b.calling_code) OVER one AS all_code, max(b.price_category) OVER one AS all_category
        FROM (SELECT d.attempt_number, d.channel, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown,
                     d.started_at, d.finished_at, d.segments, d.cost_micros, d.currency, d.calling_code, d.price_category
              FROM archiver.delivery_attempts d
              WHERE d.created_at = of_created AND d.notification_id = of_id AND d.tenant_id = of_tenant AND d.retention_class = of_class
              UNION ALL
              SELECT l.attempt_number, l.channel, l.vendor, l.outcome, l.code, l.enhanced_code, l.reply, l.vendor_message_id, l.was_unknown,
                     l.started_at, l.finished_at, l.segments, l.cost_micros, l.currency, l.calling_code, l.price_category
              FROM archiver.late_attempts l
              WHERE l.created_at = of_created AND l.notification_id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) b
        WINDOW one AS (PARTITION BY b.attempt_number), priced AS (PARTITION BY b.attempt_number ORDER BY b.cost_micros DESC NULLS LAST)
        ORDER BY b.attempt_number, array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,clicked,failed}'::text[],
                                                  b.outcome) DESC, b.was_unknown DESC, coalesce(b.finished_at, '-infinity') DESC) a
    CROSS JOIN LATERAL archive.attempt_cost(of_tenant, a.channel, a.vendor, a.outcome, coalesce(a.started_at, of_created), a.all_segments,
                                            a.said_micros, a.said_currency, a.all_code, a.all_category) c
    ORDER BY a.attempt_number;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.notification_attempts(text, timestamptz, text) TO stentor_gateway, stentor_cli;

-- ---- the facts ----
-- As in archive/0005_facts.sql, with what the events say of segments and cost; country and minutes stand in no event and are null.
DROP FUNCTION archive.notifications_facts(timestamptz, timestamptz), archive.delivery_attempts_facts(timestamptz, timestamptz), archive.history_attempts(timestamptz, timestamptz);

CREATE FUNCTION archive.history_attempts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, attempt_number smallint, channel text, vendor text,
                   outcome text, code text, enhanced_code text, started_at timestamptz, finished_at timestamptz, was_unknown boolean,
                   segments integer, cost_micros bigint, currency text, calling_code text, price_category text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY
    SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
           a.started_at, a.finished_at, a.was_unknown, a.segments, a.cost_micros, a.currency, a.calling_code, a.price_category
    FROM archiver.delivery_attempts a
    WHERE a.created_at >= since AND a.created_at < before AND NOT EXISTS (
        SELECT FROM archiver.late_attempts l WHERE l.created_at = a.created_at AND l.notification_id = a.notification_id
            AND l.attempt_number = a.attempt_number AND l.tenant_id = a.tenant_id)
    UNION ALL -- of two the greater one is whole, but for its cost
    (SELECT DISTINCT ON (b.tenant_id, b.created_at, b.notification_id, b.attempt_number) b.tenant_id, b.notification_id, b.created_at,
            b.attempt_number, b.channel, b.vendor, b.outcome, b.code, b.enhanced_code, b.started_at, b.finished_at, b.was_unknown,
            max(b.segments) OVER one, first_value(b.cost_micros) OVER priced, first_value(b.currency) OVER priced,
            max(b.calling_code) OVER one, max(b.price_category) OVER one
     FROM (SELECT l.tenant_id, l.notification_id, l.created_at, l.attempt_number, l.channel, l.vendor, l.outcome, l.code, l.enhanced_code,
                  l.started_at, l.finished_at, l.was_unknown, l.id, l.segments, l.cost_micros, l.currency, l.calling_code,
                  l.price_category
           FROM archiver.late_attempts l WHERE l.created_at >= since AND l.created_at < before
           UNION ALL
           SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
                  a.started_at, a.finished_at, a.was_unknown, a.id, a.segments, a.cost_micros, a.currency, a.calling_code,
                  a.price_category
           FROM archiver.late_attempts l
           JOIN archiver.delivery_attempts a ON a.created_at = l.created_at AND a.notification_id = l.notification_id
                AND a.attempt_number = l.attempt_number AND a.tenant_id = l.tenant_id
           WHERE l.created_at >= since AND l.created_at < before) b
     WINDOW one AS (PARTITION BY b.tenant_id, b.created_at, b.notification_id, b.attempt_number),
            priced AS (one ORDER BY b.cost_micros DESC NULLS LAST)
     ORDER BY b.tenant_id, b.created_at, b.notification_id, b.attempt_number,
              array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,clicked,failed}'::text[],
                             b.outcome) DESC,
              b.was_unknown DESC, coalesce(b.finished_at, '-infinity') DESC, coalesce(b.started_at, '-infinity') DESC, b.id DESC);
END
$$;

CREATE FUNCTION archive.delivery_attempts_facts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, attempt_number smallint, channel text, vendor text,
                   outcome text, code text, enhanced_code text, code_class text, started_at timestamptz, duration_ms bigint,
                   was_unknown boolean, fallback boolean, retry_delay_s bigint, country text, units integer, cost_micros bigint,
                   currency text, segments integer, minutes integer, calling_code text, price_category text,
                   cost_estimated boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
BEGIN
    RETURN QUERY
    SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
           substr(coalesce(a.enhanced_code, a.code), 1, 1), a.started_at, (extract(epoch FROM a.finished_at - a.started_at) * 1000)::bigint,
           a.was_unknown, coalesce(a.vendor <> first_value(a.vendor) OVER one, false),
           extract(epoch FROM a.started_at - lag(a.finished_at) OVER one)::bigint, NULL::text, c.units, c.cost_micros, c.currency,
           a.segments, NULL::integer, a.calling_code, a.price_category, c.estimated
    FROM archive.history_attempts(since, before) a
    CROSS JOIN LATERAL archive.attempt_cost(a.tenant_id, a.channel, a.vendor, a.outcome, coalesce(a.started_at, a.created_at), a.segments,
                                            a.cost_micros, a.currency, a.calling_code, a.price_category) c
    WINDOW one AS (PARTITION BY a.tenant_id, a.created_at, a.notification_id ORDER BY a.attempt_number);
END
$$;

CREATE FUNCTION archive.notifications_facts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, channel text, category text, priority text, status text,
                   reason_code text, template text, template_version text, locale text, batch_id text, source text, recipient_key text,
                   scheduled boolean, attempts integer, vendor text, queue_ms bigint, render_ms bigint, send_ms bigint, deliver_ms bigint,
                   open_s bigint, click_s bigint, units integer, cost_micros bigint, currency text, cost_estimated boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
BEGIN
    RETURN QUERY
    SELECT n.tenant_id, n.id, n.created_at, n.channel, n.category, n.priority, n.status, n.reason_code, n.template, n.template_version,
           n.locale, n.batch_id, CASE WHEN n.source_event_id IS NULL THEN 'api' ELSE 'event' END,
           encode(substr(n.address_hash, 1, 8), 'hex'), n.scheduled_for IS NOT NULL, coalesce(f.attempts, 0), f.vendor,
           (extract(epoch FROM n.queued_at - n.created_at) * 1000)::bigint, (extract(epoch FROM n.rendered_at - n.queued_at) * 1000)::bigint,
           (extract(epoch FROM n.sent_at - n.rendered_at) * 1000)::bigint, (extract(epoch FROM n.delivered_at - n.sent_at) * 1000)::bigint,
           extract(epoch FROM n.opened_at - n.sent_at)::bigint, extract(epoch FROM n.clicked_at - n.sent_at)::bigint,
           coalesce(f.units, 0), CASE WHEN f.attempts IS NULL THEN 0 ELSE f.cost END, f.currency, f.estimated
    FROM archive.history_notifications(since, before) n
    LEFT JOIN (
        SELECT a.tenant_id, a.created_at, a.notification_id, count(*)::integer AS attempts,
               (array_agg(a.vendor ORDER BY a.attempt_number DESC))[1] AS vendor, sum(a.units)::integer AS units,
               CASE WHEN bool_and(a.cost_micros IS NOT NULL) AND count(DISTINCT a.currency) <= 1 THEN sum(a.cost_micros)::bigint END AS cost,
               CASE WHEN count(DISTINCT a.currency) = 1 THEN min(a.currency) END AS currency,
               bool_or(a.cost_estimated) AS estimated
        FROM archive.delivery_attempts_facts(since, before) a GROUP BY 1, 2, 3) f
      ON f.tenant_id = n.tenant_id AND f.created_at = n.created_at AND f.notification_id = n.id;
END
$$;

REVOKE EXECUTE ON FUNCTION archive.attempt_cost(text, text, text, text, timestamptz, integer, bigint, text, text, text),
    archive.history_attempts(timestamptz, timestamptz), archive.delivery_attempts_facts(timestamptz, timestamptz), archive.notifications_facts(timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION archive.delivery_attempts_facts(timestamptz, timestamptz), archive.notifications_facts(timestamptz, timestamptz) TO stentor_archiver, stentor_cli;

-- ---- vendors side by side ----
-- What became of a channel's messages at each vendor: of the newest at_most attempts (all vendors together) of one tenant, or of all where
-- of_tenant is NULL. Partitions outside the span are not read; within it the attempts come by their key, newest first, and each finds its
-- notification by its key. Archived periods are not counted. What a later callback says of a message counts for each vendor that took it.
CREATE FUNCTION stentor.vendor_outcomes(of_tenant text, of_channel text, of_vendors text[], since timestamptz, before timestamptz,
                                        at_most integer)
    RETURNS TABLE (vendor text, attempts bigint, sent bigint, refused bigint, unknown bigint, delivered bigint, bounced bigint,
                   blocked bigint, p50_ms bigint, p95_ms bigint, cost_micros bigint, currency text, priced bigint, estimated bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
        SET enable_hashjoin = off SET enable_mergejoin = off
    AS $$
BEGIN
    RETURN QUERY
    SELECT w.name, count(a.outcome), count(*) FILTER (WHERE a.took), count(*) FILTER (WHERE a.outcome LIKE 'rejected%'),
           count(*) FILTER (WHERE a.was_unknown OR a.outcome = 'timeout'), count(*) FILTER (WHERE a.took AND a.arrived),
           count(*) FILTER (WHERE a.took AND a.status = 'bounced'), count(*) FILTER (WHERE a.took AND a.status = 'failed'),
           percentile_disc(0.5) WITHIN GROUP (ORDER BY a.took_ms) FILTER (WHERE a.took),
           percentile_disc(0.95) WITHIN GROUP (ORDER BY a.took_ms) FILTER (WHERE a.took),
           CASE WHEN count(DISTINCT a.currency) <= 1 THEN sum(a.micros)::bigint END,
           CASE WHEN count(DISTINCT a.currency) = 1 THEN max(a.currency) END,
           count(a.micros) FILTER (WHERE a.took), count(*) FILTER (WHERE a.estimated)
    FROM unnest(of_vendors) AS w (name)
    LEFT JOIN (
        SELECT n.vendor, n.outcome, n.was_unknown, c.units = 1 AS took, m.status, c.cost_micros AS micros,
               CASE WHEN c.units = 1 THEN c.currency END AS currency, c.estimated,
               m.delivered_at IS NOT NULL OR m.status IN ('delivered', 'opened', 'clicked', 'complained') AS arrived,
               (extract(epoch FROM m.delivered_at - n.finished_at) * 1000)::bigint AS took_ms
        FROM (SELECT d.* FROM archiver.delivery_attempts d
              WHERE d.created_at >= since AND d.created_at < before AND d.channel = of_channel AND d.vendor = ANY (of_vendors)
                AND (of_tenant IS NULL OR d.tenant_id = of_tenant)
              ORDER BY d.created_at DESC LIMIT at_most) n
        LEFT JOIN archiver.notifications m ON m.created_at = n.created_at AND m.id = n.notification_id AND m.tenant_id = n.tenant_id
            AND m.retention_class = n.retention_class AND m.created_at >= since AND m.created_at < before
        CROSS JOIN LATERAL archive.attempt_cost(n.tenant_id, n.channel, n.vendor, n.outcome, coalesce(n.started_at, n.created_at), n.segments,
                                                n.cost_micros, n.currency, n.calling_code, n.price_category) c) a ON a.vendor = w.name
    GROUP BY w.name;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.vendor_outcomes(text, text, text[], timestamptz, timestamptz, integer) TO stentor_cli;
