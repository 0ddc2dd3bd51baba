-- SPDX-License-Identifier: Apache-2.0
-- The audit's definer functions for history, across tenants: how far each notification is, and which attempts are known of it.
-- In schema stentor, because a rebuild replaces the schema archiver as a whole.

CREATE FUNCTION stentor.audit_history(since timestamptz, until timestamptz, for_tenant text, after_created timestamptz,
                                      after_id text, after_tenant text, at_most integer)
    RETURNS TABLE (created_at timestamptz, id text, tenant_id text, status text,
                   reached integer) -- 1 queued, 2 scheduled, 4 sent, 8 delivered, 16 opened, 32 clicked, 64 ended
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.created_at, n.id, n.tenant_id, n.status,
           (n.queued_at IS NOT NULL)::int + 2 * (n.scheduled_at IS NOT NULL)::int + 4 * (n.sent_at IS NOT NULL)::int
           + 8 * (n.delivered_at IS NOT NULL)::int + 16 * (n.opened_at IS NOT NULL)::int
           + 32 * (n.clicked_at IS NOT NULL)::int + 64 * (n.ended_at IS NOT NULL)::int
    FROM archiver.notifications n
    WHERE n.created_at >= since AND n.created_at < until
      AND (n.created_at, n.id, n.tenant_id) > (after_created, after_id, after_tenant)
      AND (for_tenant IS NULL OR n.tenant_id = for_tenant)
    ORDER BY n.created_at, n.id, n.tenant_id LIMIT at_most
$$;

CREATE FUNCTION stentor.audit_attempts(since timestamptz, until timestamptz, for_tenant text, after_created timestamptz,
                                       after_id text, after_attempt smallint, after_tenant text, at_most integer)
    RETURNS TABLE (created_at timestamptz, notification_id text, attempt_number smallint, tenant_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT a.created_at, a.notification_id, a.attempt_number, a.tenant_id
    FROM archiver.delivery_attempts a
    WHERE a.created_at >= since AND a.created_at < until
      AND (a.created_at, a.notification_id, a.attempt_number, a.tenant_id)
          > (after_created, after_id, after_attempt, after_tenant)
      AND (for_tenant IS NULL OR a.tenant_id = for_tenant)
    ORDER BY a.created_at, a.notification_id, a.attempt_number, a.tenant_id LIMIT at_most
$$;

GRANT EXECUTE ON FUNCTION stentor.audit_history(timestamptz, timestamptz, text, timestamptz, text, text, integer),
    stentor.audit_attempts(timestamptz, timestamptz, text, timestamptz, text, smallint, text, integer) TO stentor_cli;
