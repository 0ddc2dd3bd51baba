-- SPDX-License-Identifier: Apache-2.0
-- What gateway asks history for. In schema stentor, as the questions of 0002.

-- One notification, merged with what came after its period was archived. A plan is made for each call: the class and the time are constants
-- in it, so it looks at one partition and not at every month.
CREATE FUNCTION stentor.notification_shown(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (status text, reason_code text, reason text, channel text, category text, priority text, template text,
                   template_version text, recipient_id text, correlation_id text, batch_id text, scheduled_for timestamptz,
                   queued_at timestamptz, scheduled_at timestamptz, rendered_at timestamptz, sent_at timestamptz, delivered_at timestamptz,
                   opened_at timestamptz, clicked_at timestamptz, ended_at timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
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
END
$$;

-- The unit whose tables such a notification would be in, had they not been moved to object storage; no row: they are in Postgres.
CREATE FUNCTION stentor.archived_unit(of_created timestamptz, of_id text) RETURNS TABLE (unit text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT u.id FROM archive.units u
    WHERE u.kind = 'notifications' AND u.class = stentor.retention_class(of_id) AND u.starts_at <= of_created AND u.ends_at > of_created
      AND u.state IN ('removing', 'removed')
    LIMIT 1
    $$;

GRANT EXECUTE ON FUNCTION stentor.notification_shown(text, timestamptz, text), stentor.archived_unit(timestamptz, text) TO stentor_gateway;
