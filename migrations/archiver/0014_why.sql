-- SPDX-License-Identifier: Apache-2.0
-- Under which credential, and by which route, each attempt was made, for who asks why. Rows of before have NULL there; so have archived
-- objects of before, which have no such columns, and attempts over the SMTP server, which has neither.
ALTER TABLE archiver.delivery_attempts ADD COLUMN credential text, ADD COLUMN route text;
ALTER TABLE archiver.late_attempts ADD COLUMN credential text, ADD COLUMN route text;

-- As in 0012, with what is new and the wait that the vendor asked for.
DROP FUNCTION stentor.notification_attempts(text, timestamptz, text);
CREATE FUNCTION stentor.notification_attempts(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (attempt_number smallint, vendor text, outcome text, code text, enhanced_code text, reply text, vendor_message_id text,
                   was_unknown boolean, started_at timestamptz, finished_at timestamptz, segments integer, cost_micros bigint,
                   currency text, cost_estimated boolean, retry_after_ms integer, credential text, route text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
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
END
$$;
GRANT EXECUTE ON FUNCTION stentor.notification_attempts(text, timestamptz, text) TO stentor_gateway, stentor_cli;
