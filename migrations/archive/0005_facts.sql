-- SPDX-License-Identifier: Apache-2.0
-- Facts for analytics, and what sending costs: functions over the history that is hot; a day's facts also go to object storage as Parquet
-- (common/facts). No body, no address and no reply is in them. They are functions and not views, because a rebuild replaces the tables
-- that they read, and because each is asked for a span of time.

-- What a vendor takes for a unit. The row that was valid when the attempt began counts: the tenant's own before '*', the country's before
-- '*', then the newest. A price of 0 is one.
CREATE TABLE archive.unit_costs (
    channel    text        COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    vendor     text        COLLATE "C" NOT NULL CHECK (vendor ~ '^[a-z0-9_-]{1,64}$'),
    country    text        COLLATE "C" NOT NULL DEFAULT '*' CHECK (country ~ '^([A-Z]{2}|\*)$'),
    tenant     text        COLLATE "C" NOT NULL DEFAULT '*' CHECK (tenant ~ '^([a-z0-9_-]{1,32}|\*)$'),
    valid_from timestamptz NOT NULL,
    unit       text        COLLATE "C" NOT NULL CHECK (unit IN ('message', 'segment', 'minute', 'conversation')),
    micros     bigint      NOT NULL CHECK (micros >= 0), -- millionths of the currency
    currency   text        COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    set_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (channel, vendor, country, tenant, valid_from)
);
GRANT SELECT ON archive.unit_costs TO stentor_archiver;
GRANT SELECT, INSERT, UPDATE ON archive.unit_costs TO stentor_cli;

-- What a vendor invoiced for a day. Tenant '*': for all tenants together; it is shared out by what each one's attempts cost.
CREATE TABLE archive.invoiced (
    day         date        NOT NULL,
    channel     text        COLLATE "C" NOT NULL,
    vendor      text        COLLATE "C" NOT NULL,
    tenant      text        COLLATE "C" NOT NULL DEFAULT '*' CHECK (tenant ~ '^([a-z0-9_-]{1,32}|\*)$'),
    micros      bigint      NOT NULL,
    currency    text        COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    imported_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (day, channel, vendor, tenant)
);
GRANT SELECT ON archive.invoiced TO stentor_archiver;
GRANT SELECT, INSERT, UPDATE ON archive.invoiced TO stentor_cli;

-- Whether all notifications of a span are still in Postgres: facts of a span of which a unit was removed are not written again.
CREATE FUNCTION archive.is_hot(since timestamptz, before timestamptz) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT NOT EXISTS (SELECT FROM archive.units u WHERE u.kind = 'notifications' AND u.starts_at < before AND u.ends_at > since
                       AND u.state IN ('removing', 'removed', 'restored', 'expired'))
    $$;

-- History of a span as readers see it: with what came late for its sealed periods, by the fold's law (common/history). Only rows that have a
-- late one are merged.
CREATE FUNCTION archive.history_notifications(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, id text, created_at timestamptz, channel text, category text, priority text, status text, reason_code text,
                   template text, template_version text, locale text, batch_id text, source_event_id text, address_hash bytea,
                   scheduled_for timestamptz, queued_at timestamptz, rendered_at timestamptz, sent_at timestamptz, delivered_at timestamptz,
                   opened_at timestamptz, clicked_at timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY
    SELECT n.tenant_id, n.id, n.created_at, n.channel, n.category, n.priority, n.status, n.reason_code, n.template, n.template_version, n.locale,
           n.batch_id, n.source_event_id, n.address_hash, n.scheduled_for, n.queued_at, n.rendered_at, n.sent_at, n.delivered_at, n.opened_at,
           n.clicked_at
    FROM archiver.notifications n
    WHERE n.created_at >= since AND n.created_at < before AND NOT EXISTS (
        SELECT FROM archiver.late_notifications l WHERE l.created_at = n.created_at AND l.id = n.id AND l.tenant_id = n.tenant_id)
    UNION ALL
    SELECT b.tenant_id, b.id, b.created_at, max(b.channel), max(b.category), max(b.priority),
           (array_agg(b.status ORDER BY b.status_rank DESC))[1],
           (array_agg(b.reason_code ORDER BY b.status_rank DESC, coalesce(b.reason_code, '') COLLATE "C" DESC,
                      coalesce(b.reason, '') COLLATE "C" DESC))[1],
           max(b.template COLLATE "C"), max(b.template_version COLLATE "C"), max(b.locale COLLATE "C"), max(b.batch_id),
           max(b.source_event_id COLLATE "C"), decode(max(encode(b.address_hash, 'hex') COLLATE "C"), 'hex'), min(b.scheduled_for),
           min(b.queued_at), min(b.rendered_at), min(b.sent_at), min(b.delivered_at), min(b.opened_at), min(b.clicked_at)
    FROM (SELECT l.* FROM archiver.late_notifications l WHERE l.created_at >= since AND l.created_at < before
          UNION ALL
          SELECT n.* FROM archiver.late_notifications l
          JOIN archiver.notifications n ON n.created_at = l.created_at AND n.id = l.id AND n.tenant_id = l.tenant_id
          WHERE l.created_at >= since AND l.created_at < before) b
    GROUP BY b.tenant_id, b.id, b.created_at;
END
$$;

CREATE FUNCTION archive.history_attempts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, attempt_number smallint, channel text, vendor text,
                   outcome text, code text, enhanced_code text, started_at timestamptz, finished_at timestamptz, was_unknown boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY
    SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
           a.started_at, a.finished_at, a.was_unknown
    FROM archiver.delivery_attempts a
    WHERE a.created_at >= since AND a.created_at < before AND NOT EXISTS (
        SELECT FROM archiver.late_attempts l WHERE l.created_at = a.created_at AND l.notification_id = a.notification_id
            AND l.attempt_number = a.attempt_number AND l.tenant_id = a.tenant_id)
    UNION ALL -- of two the greater one is whole
    (SELECT DISTINCT ON (b.tenant_id, b.created_at, b.notification_id, b.attempt_number) b.tenant_id, b.notification_id, b.created_at,
            b.attempt_number, b.channel, b.vendor, b.outcome, b.code, b.enhanced_code, b.started_at, b.finished_at, b.was_unknown
     FROM (SELECT l.tenant_id, l.notification_id, l.created_at, l.attempt_number, l.channel, l.vendor, l.outcome, l.code, l.enhanced_code,
                  l.started_at, l.finished_at, l.was_unknown, l.id
           FROM archiver.late_attempts l WHERE l.created_at >= since AND l.created_at < before
           UNION ALL
           SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
                  a.started_at, a.finished_at, a.was_unknown, a.id
           FROM archiver.late_attempts l
           JOIN archiver.delivery_attempts a ON a.created_at = l.created_at AND a.notification_id = l.notification_id
                AND a.attempt_number = l.attempt_number AND a.tenant_id = l.tenant_id
           WHERE l.created_at >= since AND l.created_at < before) b
     ORDER BY b.tenant_id, b.created_at, b.notification_id, b.attempt_number,
              array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,clicked,failed}'::text[],
                             b.outcome) DESC,
              b.was_unknown DESC, coalesce(b.finished_at, '-infinity') DESC, coalesce(b.started_at, '-infinity') DESC, b.id DESC);
END
$$;

-- Attempts of the notifications of a span. units: 1 when the vendor took the message (segments and minutes are in no event: those columns and
-- country are null), else 0. cost_micros: null when no price is known for it.
CREATE FUNCTION archive.delivery_attempts_facts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, attempt_number smallint, channel text, vendor text,
                   outcome text, code text, enhanced_code text, code_class text, started_at timestamptz, duration_ms bigint,
                   was_unknown boolean, fallback boolean, retry_delay_s bigint, country text, units integer, cost_micros bigint,
                   currency text, segments integer, minutes integer)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
BEGIN
    RETURN QUERY
    SELECT a.tenant_id, a.notification_id, a.created_at, a.attempt_number, a.channel, a.vendor, a.outcome, a.code, a.enhanced_code,
           substr(coalesce(a.enhanced_code, a.code), 1, 1), a.started_at, (extract(epoch FROM a.finished_at - a.started_at) * 1000)::bigint,
           a.was_unknown, coalesce(a.vendor <> first_value(a.vendor) OVER one, false),
           extract(epoch FROM a.started_at - lag(a.finished_at) OVER one)::bigint, NULL::text, t.units,
           CASE WHEN t.units = 0 THEN 0 ELSE t.units * c.micros END, c.currency, NULL::integer, NULL::integer
    FROM archive.history_attempts(since, before) a
    CROSS JOIN LATERAL (SELECT (a.outcome IN ('accepted', 'delivered', 'bounce', 'complaint', 'opened', 'clicked'))::integer AS units) t
    LEFT JOIN LATERAL (
        SELECT u.micros, u.currency FROM archive.unit_costs u
        WHERE u.channel = a.channel AND u.vendor = a.vendor AND u.country = '*' AND u.tenant IN (a.tenant_id, '*')
          AND u.valid_from <= coalesce(a.started_at, a.created_at)
        ORDER BY u.tenant = '*', u.valid_from DESC LIMIT 1) c ON true
    WINDOW one AS (PARTITION BY a.tenant_id, a.created_at, a.notification_id ORDER BY a.attempt_number);
END
$$;

-- The notifications of a span. recipient_key: of the same recipient's address, within one tenant and channel; nothing is found by it.
CREATE FUNCTION archive.notifications_facts(since timestamptz, before timestamptz)
    RETURNS TABLE (tenant_id text, notification_id text, created_at timestamptz, channel text, category text, priority text, status text,
                   reason_code text, template text, template_version text, locale text, batch_id text, source text, recipient_key text,
                   scheduled boolean, attempts integer, vendor text, queue_ms bigint, render_ms bigint, send_ms bigint, deliver_ms bigint,
                   open_s bigint, click_s bigint, units integer, cost_micros bigint, currency text)
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
           coalesce(f.units, 0), CASE WHEN f.attempts IS NULL THEN 0 ELSE f.cost END, f.currency
    FROM archive.history_notifications(since, before) n
    LEFT JOIN (
        SELECT a.tenant_id, a.created_at, a.notification_id, count(*)::integer AS attempts,
               (array_agg(a.vendor ORDER BY a.attempt_number DESC))[1] AS vendor, sum(a.units)::integer AS units,
               CASE WHEN bool_and(a.cost_micros IS NOT NULL) AND count(DISTINCT a.currency) <= 1 THEN sum(a.cost_micros)::bigint END AS cost,
               CASE WHEN count(DISTINCT a.currency) = 1 THEN min(a.currency) END AS currency
        FROM archive.delivery_attempts_facts(since, before) a GROUP BY 1, 2, 3) f
      ON f.tenant_id = n.tenant_id AND f.created_at = n.created_at AND f.notification_id = n.id;
END
$$;

-- Cost model, version 1: what attempts cost by the prices known, what was invoiced, and the difference (null where one is missing or the
-- currencies differ). unpriced: units without a price. The span is that of the notifications; the day is the attempt's.
CREATE FUNCTION archive.cost_model_v1(since timestamptz, before timestamptz)
    RETURNS TABLE (day date, tenant text, channel text, vendor text, currency text, attempts bigint, units bigint, unpriced bigint,
                   cost_micros bigint, invoice_micros bigint, difference_micros bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
BEGIN
    RETURN QUERY
    WITH used AS (
        SELECT coalesce(a.started_at, a.created_at)::date AS day, a.tenant_id AS tenant, a.channel, a.vendor, max(a.currency) AS currency,
               count(*) AS attempts, sum(a.units)::bigint AS units, coalesce(sum(a.units) FILTER (WHERE a.cost_micros IS NULL), 0)::bigint
               AS unpriced, coalesce(sum(a.cost_micros), 0)::bigint AS cost
        FROM archive.delivery_attempts_facts(since, before) a GROUP BY 1, 2, 3, 4
    ), shares AS (
        SELECT u.*, CASE WHEN sum(u.cost) OVER w > 0 THEN u.cost / sum(u.cost) OVER w
                         WHEN sum(u.units) OVER w > 0 THEN u.units / sum(u.units) OVER w ELSE 1.0 / count(*) OVER w END AS share
        FROM used u WINDOW w AS (PARTITION BY u.day, u.channel, u.vendor)
    ), billed AS (
        SELECT s.*, i.currency AS billed_in, CASE WHEN i.tenant = '*' THEN round(i.micros * s.share) ELSE i.micros END::bigint AS invoice
        FROM shares s LEFT JOIN LATERAL (
            SELECT v.* FROM archive.invoiced v WHERE v.day = s.day AND v.channel = s.channel AND v.vendor = s.vendor
              AND v.tenant IN (s.tenant, '*') ORDER BY v.tenant = '*' LIMIT 1) i ON true
    )
    SELECT b.day, b.tenant, b.channel, b.vendor, coalesce(b.currency, b.billed_in), b.attempts, b.units, b.unpriced, b.cost, b.invoice,
           CASE WHEN b.currency = b.billed_in THEN b.invoice - b.cost END
    FROM billed b
    UNION ALL -- invoiced, and nothing was sent
    SELECT v.day, v.tenant, v.channel, v.vendor, v.currency, 0, 0, 0, 0, v.micros, v.micros
    FROM archive.invoiced v
    WHERE v.day >= since::date AND v.day < before::date AND NOT EXISTS (
        SELECT FROM used u WHERE u.day = v.day AND u.channel = v.channel AND u.vendor = v.vendor AND v.tenant IN (u.tenant, '*'))
    ORDER BY 1, 2, 3, 4;
END
$$;

-- Days whose facts are in object storage. A day is written when it is over, and once more after a week, with what came since.
CREATE TABLE archive.facts_days (
    day        date        PRIMARY KEY,
    written_at timestamptz NOT NULL DEFAULT now(),
    rows       bigint      NOT NULL,
    objects    bigint      NOT NULL,
    bytes      bigint      NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON archive.facts_days TO stentor_archiver, stentor_cli;

-- The oldest day of the last nine that is to be written; null: none.
CREATE FUNCTION archive.facts_due() RETURNS date
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
    SELECT d.day::date FROM generate_series(current_date - 9, current_date - 1, interval '1 day') AS d (day)
    LEFT JOIN archive.facts_days f ON f.day = d.day::date
    WHERE (f.day IS NULL OR (f.written_at < d.day + interval '8 days' AND now() >= d.day + interval '8 days'))
      AND archive.is_hot(d.day, d.day + interval '1 day')
    ORDER BY 1 LIMIT 1
    $$;

REVOKE EXECUTE ON FUNCTION archive.history_notifications(timestamptz, timestamptz), archive.history_attempts(timestamptz, timestamptz) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION archive.facts_due(), archive.is_hot(timestamptz, timestamptz), archive.delivery_attempts_facts(timestamptz, timestamptz),
    archive.notifications_facts(timestamptz, timestamptz), archive.cost_model_v1(timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION archive.facts_due(), archive.is_hot(timestamptz, timestamptz), archive.delivery_attempts_facts(timestamptz, timestamptz),
    archive.notifications_facts(timestamptz, timestamptz), archive.cost_model_v1(timestamptz, timestamptz) TO stentor_archiver, stentor_cli;
