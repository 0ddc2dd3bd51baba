-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/notifications/{id} in half of Postgres' time: of a plan over all partitions every one is locked at each call, and the merge with
-- what came after an archived period sets up twenty aggregates, or windows, for one row. So the partitions of the id's class alone are
-- asked, and the merge only where there is something to merge. An attempt has one row (its key has the number), late ones apart.
-- The results are those of archiver/0007 and 0014; the settings those of 0021.

CREATE OR REPLACE FUNCTION stentor.notification_shown(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (status text, reason_code text, reason text, channel text, category text, priority text, template text,
                   template_version text, recipient_id text, correlation_id text, batch_id text, scheduled_for timestamptz,
                   queued_at timestamptz, scheduled_at timestamptz, rendered_at timestamptz, sent_at timestamptz, delivered_at timestamptz,
                   opened_at timestamptz, clicked_at timestamptz, ended_at timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_seqscan = off SET enable_bitmapscan = off
    AS $function$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
    IF EXISTS (SELECT FROM archiver.late_notifications l
               WHERE l.created_at = of_created AND l.id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) THEN
        RETURN QUERY
        SELECT (array_agg(b.status ORDER BY b.status_rank DESC))[1], (array_agg(b.reason_code ORDER BY b.status_rank DESC))[1],
               (array_agg(b.reason ORDER BY b.status_rank DESC))[1], max(b.channel), max(b.category), max(b.priority), max(b.template),
               max(b.template_version), max(b.recipient_id), max(b.correlation_id), max(b.batch_id), min(b.scheduled_for), min(b.queued_at),
               min(b.scheduled_at), min(b.rendered_at), min(b.sent_at), min(b.delivered_at), min(b.opened_at), min(b.clicked_at), min(b.ended_at)
        FROM (SELECT n.* FROM archiver.notifications n
              WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant AND n.retention_class = of_class
              UNION ALL
              SELECT l.* FROM archiver.late_notifications l
              WHERE l.created_at = of_created AND l.id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) b
        HAVING count(*) > 0;
    ELSIF of_class = 'S' THEN
        RETURN QUERY
        SELECT n.status, n.reason_code, n.reason, n.channel, n.category, n.priority, n.template, n.template_version, n.recipient_id,
               n.correlation_id, n.batch_id, n.scheduled_for, n.queued_at, n.scheduled_at, n.rendered_at, n.sent_at, n.delivered_at,
               n.opened_at, n.clicked_at, n.ended_at
        FROM archiver.notifications_standard n
        WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant AND n.retention_class = of_class;
    ELSIF of_class = 'B' THEN
        RETURN QUERY
        SELECT n.status, n.reason_code, n.reason, n.channel, n.category, n.priority, n.template, n.template_version, n.recipient_id,
               n.correlation_id, n.batch_id, n.scheduled_for, n.queued_at, n.scheduled_at, n.rendered_at, n.sent_at, n.delivered_at,
               n.opened_at, n.clicked_at, n.ended_at
        FROM archiver.notifications_brief n
        WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant AND n.retention_class = of_class;
    ELSE
        RETURN QUERY
        SELECT n.status, n.reason_code, n.reason, n.channel, n.category, n.priority, n.template, n.template_version, n.recipient_id,
               n.correlation_id, n.batch_id, n.scheduled_for, n.queued_at, n.scheduled_at, n.rendered_at, n.sent_at, n.delivered_at,
               n.opened_at, n.clicked_at, n.ended_at
        FROM archiver.notifications_record n
        WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant AND n.retention_class = of_class;
    END IF;
END
$function$;

CREATE OR REPLACE FUNCTION stentor.notification_attempts(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (attempt_number smallint, vendor text, outcome text, code text, enhanced_code text, reply text, vendor_message_id text,
                   was_unknown boolean, started_at timestamptz, finished_at timestamptz, segments integer, cost_micros bigint,
                   currency text, cost_estimated boolean, retry_after_ms integer, credential text, route text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_seqscan = off SET enable_bitmapscan = off
    AS $function$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
    IF EXISTS (SELECT FROM archiver.late_attempts l
               WHERE l.created_at = of_created AND l.notification_id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) THEN
        RETURN QUERY
        SELECT a.attempt_number, a.vendor, a.outcome, a.code, a.enhanced_code, a.reply, a.vendor_message_id, a.was_unknown, a.started_at,
               a.finished_at, a.all_segments, c.cost_micros, c.currency, c.estimated, a.retry_after_ms, a.credential, a.route
        FROM (
            SELECT DISTINCT ON (b.attempt_number) b.*, max(b.segments) OVER one AS all_segments,
                   first_value(b.cost_micros) OVER priced AS said_micros, first_value(b.currency) OVER priced AS said_currency,
                   max(b.calling_code) OVER one AS all_code, max(b.price_category) OVER one AS all_category
            FROM (SELECT d.attempt_number, d.channel, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown,
                         d.started_at, d.finished_at, d.segments, d.cost_micros, d.currency, d.calling_code, d.price_category,
                         d.retry_after_ms, d.credential, d.route
                  FROM archiver.delivery_attempts d
                  WHERE d.created_at = of_created AND d.notification_id = of_id AND d.tenant_id = of_tenant AND d.retention_class = of_class
                  UNION ALL
                  SELECT l.attempt_number, l.channel, l.vendor, l.outcome, l.code, l.enhanced_code, l.reply, l.vendor_message_id, l.was_unknown,
                         l.started_at, l.finished_at, l.segments, l.cost_micros, l.currency, l.calling_code, l.price_category,
                         l.retry_after_ms, l.credential, l.route
                  FROM archiver.late_attempts l
                  WHERE l.created_at = of_created AND l.notification_id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) b
            WINDOW one AS (PARTITION BY b.attempt_number), priced AS (PARTITION BY b.attempt_number ORDER BY b.cost_micros DESC NULLS LAST)
            ORDER BY b.attempt_number, array_position('{accepted,rejected_retryable,rejected_terminal,timeout,delivered,bounce,complaint,opened,clicked,failed}'::text[],
                                                      b.outcome) DESC, b.was_unknown DESC, coalesce(b.finished_at, '-infinity') DESC) a
        CROSS JOIN LATERAL archive.attempt_cost(of_tenant, a.channel, a.vendor, a.outcome, coalesce(a.started_at, of_created), a.all_segments,
                                                a.said_micros, a.said_currency, a.all_code, a.all_category) c
        ORDER BY a.attempt_number;
    ELSIF of_class = 'S' THEN
        RETURN QUERY
        SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
               d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route
        FROM archiver.delivery_attempts_standard d
        CROSS JOIN LATERAL archive.attempt_cost(of_tenant, d.channel, d.vendor, d.outcome, coalesce(d.started_at, of_created), d.segments,
                                                d.cost_micros, d.currency, d.calling_code, d.price_category) c
        WHERE d.created_at = of_created AND d.notification_id = of_id AND d.tenant_id = of_tenant AND d.retention_class = of_class
        ORDER BY d.attempt_number;
    ELSIF of_class = 'B' THEN
        RETURN QUERY
        SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
               d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route
        FROM archiver.delivery_attempts_brief d
        CROSS JOIN LATERAL archive.attempt_cost(of_tenant, d.channel, d.vendor, d.outcome, coalesce(d.started_at, of_created), d.segments,
                                                d.cost_micros, d.currency, d.calling_code, d.price_category) c
        WHERE d.created_at = of_created AND d.notification_id = of_id AND d.tenant_id = of_tenant AND d.retention_class = of_class
        ORDER BY d.attempt_number;
    ELSE
        RETURN QUERY
        SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
               d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route
        FROM archiver.delivery_attempts_record d
        CROSS JOIN LATERAL archive.attempt_cost(of_tenant, d.channel, d.vendor, d.outcome, coalesce(d.started_at, of_created), d.segments,
                                                d.cost_micros, d.currency, d.calling_code, d.price_category) c
        WHERE d.created_at = of_created AND d.notification_id = of_id AND d.tenant_id = of_tenant AND d.retention_class = of_class
        ORDER BY d.attempt_number;
    END IF;
END
$function$;
