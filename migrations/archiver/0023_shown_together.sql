-- SPDX-License-Identifier: Apache-2.0
-- GET /v1/notifications/{id} of several callers at once, in one statement: of a question by one id most is what each statement costs (its
-- transaction, the settings of the function, the start of its plan), not the rows. n is the place in the arrays, from 1. Each id is asked
-- with its own tenant. Where one of them came after its period was archived they are asked one by one (archiver/0022 has the merge).
-- As there: the partitions of the ids' classes alone, and of these the ones between the first and the last time. LIMIT 1 makes each id one
-- look-up by its key: a join would read all rows of that time for each id where the planner knows little of the table.

CREATE FUNCTION stentor.notifications_shown(of_tenants text[], created timestamptz[], ids text[])
    RETURNS TABLE (n integer, status text, reason_code text, reason text, channel text, category text, priority text, template text,
                   template_version text, recipient_id text, correlation_id text, batch_id text, scheduled_for timestamptz,
                   queued_at timestamptz, scheduled_at timestamptz, rendered_at timestamptz, sent_at timestamptz, delivered_at timestamptz,
                   opened_at timestamptz, clicked_at timestamptz, ended_at timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
    AS $function$
DECLARE
    lowest timestamptz;
    highest timestamptz;
    classes text := '';
BEGIN
    FOR i IN 1 .. cardinality(ids) LOOP
        lowest := least(lowest, created[i]);
        highest := greatest(highest, created[i]);
        classes := classes || stentor.retention_class(ids[i]);
    END LOOP;
    IF EXISTS (SELECT FROM unnest(of_tenants, created, ids) AS u (tenant_id, created_at, id)
               JOIN archiver.late_notifications l ON l.created_at = u.created_at AND l.id = u.id AND l.tenant_id = u.tenant_id
                    AND l.retention_class = stentor.retention_class(u.id)) THEN
        FOR i IN 1 .. cardinality(ids) LOOP
            RETURN QUERY SELECT i, s.* FROM stentor.notification_shown(of_tenants[i], created[i], ids[i]) s;
        END LOOP;
        RETURN;
    END IF;
    IF strpos(classes, 'S') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT h.status, h.reason_code, h.reason, h.channel, h.category, h.priority, h.template, h.template_version, h.recipient_id,
                   h.correlation_id, h.batch_id, h.scheduled_for, h.queued_at, h.scheduled_at, h.rendered_at, h.sent_at, h.delivered_at, h.opened_at,
                   h.clicked_at, h.ended_at
            FROM archiver.notifications_standard h
            WHERE h.created_at = u.created_at AND h.id = u.id AND h.tenant_id = u.tenant_id AND h.retention_class = 'S'
              AND h.created_at >= lowest AND h.created_at <= highest LIMIT 1) a
        WHERE stentor.retention_class(u.id) = 'S';
    END IF;
    IF strpos(classes, 'B') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT h.status, h.reason_code, h.reason, h.channel, h.category, h.priority, h.template, h.template_version, h.recipient_id,
                   h.correlation_id, h.batch_id, h.scheduled_for, h.queued_at, h.scheduled_at, h.rendered_at, h.sent_at, h.delivered_at, h.opened_at,
                   h.clicked_at, h.ended_at
            FROM archiver.notifications_brief h
            WHERE h.created_at = u.created_at AND h.id = u.id AND h.tenant_id = u.tenant_id AND h.retention_class = 'B'
              AND h.created_at >= lowest AND h.created_at <= highest LIMIT 1) a
        WHERE stentor.retention_class(u.id) = 'B';
    END IF;
    IF strpos(classes, 'R') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT h.status, h.reason_code, h.reason, h.channel, h.category, h.priority, h.template, h.template_version, h.recipient_id,
                   h.correlation_id, h.batch_id, h.scheduled_for, h.queued_at, h.scheduled_at, h.rendered_at, h.sent_at, h.delivered_at, h.opened_at,
                   h.clicked_at, h.ended_at
            FROM archiver.notifications_record h
            WHERE h.created_at = u.created_at AND h.id = u.id AND h.tenant_id = u.tenant_id AND h.retention_class = 'R'
              AND h.created_at >= lowest AND h.created_at <= highest LIMIT 1) a
        WHERE stentor.retention_class(u.id) = 'R';
    END IF;
END
$function$;

-- The last at_most attempts of each, the newest first; `attempts` is how many there are in all.
CREATE FUNCTION stentor.notifications_attempts(of_tenants text[], created timestamptz[], ids text[], at_most integer)
    RETURNS TABLE (n integer, attempt_number smallint, vendor text, outcome text, code text, enhanced_code text, reply text,
                   vendor_message_id text, was_unknown boolean, started_at timestamptz, finished_at timestamptz, segments integer,
                   cost_micros bigint, currency text, cost_estimated boolean, retry_after_ms integer, credential text, route text,
                   attempts bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
    AS $function$
DECLARE
    lowest timestamptz;
    highest timestamptz;
    classes text := '';
BEGIN
    FOR i IN 1 .. cardinality(ids) LOOP
        lowest := least(lowest, created[i]);
        highest := greatest(highest, created[i]);
        classes := classes || stentor.retention_class(ids[i]);
    END LOOP;
    IF EXISTS (SELECT FROM unnest(of_tenants, created, ids) AS u (tenant_id, created_at, id)
               JOIN archiver.late_attempts l ON l.created_at = u.created_at AND l.notification_id = u.id AND l.tenant_id = u.tenant_id
                    AND l.retention_class = stentor.retention_class(u.id)) THEN
        FOR i IN 1 .. cardinality(ids) LOOP
            RETURN QUERY SELECT i, s.*, count(*) OVER () FROM stentor.notification_attempts(of_tenants[i], created[i], ids[i]) s
                         ORDER BY s.attempt_number DESC LIMIT at_most;
        END LOOP;
        RETURN;
    END IF;
    IF strpos(classes, 'S') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
                   d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route, count(*) OVER ()
            FROM archiver.delivery_attempts_standard d
            CROSS JOIN LATERAL archive.attempt_cost(u.tenant_id, d.channel, d.vendor, d.outcome, coalesce(d.started_at, u.created_at), d.segments,
                                                    d.cost_micros, d.currency, d.calling_code, d.price_category) c
            WHERE d.created_at = u.created_at AND d.notification_id = u.id AND d.tenant_id = u.tenant_id AND d.retention_class = 'S'
              AND d.created_at >= lowest AND d.created_at <= highest
            ORDER BY d.attempt_number DESC LIMIT at_most) a
        WHERE stentor.retention_class(u.id) = 'S';
    END IF;
    IF strpos(classes, 'B') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
                   d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route, count(*) OVER ()
            FROM archiver.delivery_attempts_brief d
            CROSS JOIN LATERAL archive.attempt_cost(u.tenant_id, d.channel, d.vendor, d.outcome, coalesce(d.started_at, u.created_at), d.segments,
                                                    d.cost_micros, d.currency, d.calling_code, d.price_category) c
            WHERE d.created_at = u.created_at AND d.notification_id = u.id AND d.tenant_id = u.tenant_id AND d.retention_class = 'B'
              AND d.created_at >= lowest AND d.created_at <= highest
            ORDER BY d.attempt_number DESC LIMIT at_most) a
        WHERE stentor.retention_class(u.id) = 'B';
    END IF;
    IF strpos(classes, 'R') > 0 THEN
        RETURN QUERY
        SELECT u.n::integer, a.*
        FROM unnest(of_tenants, created, ids) WITH ORDINALITY AS u (tenant_id, created_at, id, n)
        CROSS JOIN LATERAL (
            SELECT d.attempt_number, d.vendor, d.outcome, d.code, d.enhanced_code, d.reply, d.vendor_message_id, d.was_unknown, d.started_at,
                   d.finished_at, d.segments, c.cost_micros, c.currency, c.estimated, d.retry_after_ms, d.credential, d.route, count(*) OVER ()
            FROM archiver.delivery_attempts_record d
            CROSS JOIN LATERAL archive.attempt_cost(u.tenant_id, d.channel, d.vendor, d.outcome, coalesce(d.started_at, u.created_at), d.segments,
                                                    d.cost_micros, d.currency, d.calling_code, d.price_category) c
            WHERE d.created_at = u.created_at AND d.notification_id = u.id AND d.tenant_id = u.tenant_id AND d.retention_class = 'R'
              AND d.created_at >= lowest AND d.created_at <= highest
            ORDER BY d.attempt_number DESC LIMIT at_most) a
        WHERE stentor.retention_class(u.id) = 'R';
    END IF;
END
$function$;

GRANT EXECUTE ON FUNCTION stentor.notifications_shown(text[], timestamptz[], text[]),
    stentor.notifications_attempts(text[], timestamptz[], text[], integer) TO stentor_gateway;
