-- SPDX-License-Identifier: Apache-2.0
-- The audit's door to the clock: which notifications wait for a time, across tenants. Ids sort by the time in them.
CREATE FUNCTION digest_flusher.audit_due(from_id text, until_id text, for_tenant text, after text, at_most integer)
    RETURNS TABLE (work_id text, notification_id text, tenant_id text, due_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT w.work_id, w.notification_id, w.tenant_id, w.due_at FROM digest_flusher.due_work w
    WHERE w.work_id > after AND w.notification_id >= from_id AND w.notification_id < until_id
      AND (for_tenant IS NULL OR w.tenant_id = for_tenant)
    ORDER BY w.work_id LIMIT at_most
$$;
REVOKE ALL ON FUNCTION digest_flusher.audit_due(text, text, text, text, integer) FROM PUBLIC;
GRANT USAGE ON SCHEMA digest_flusher TO stentor_cli;
GRANT EXECUTE ON FUNCTION digest_flusher.audit_due(text, text, text, text, integer) TO stentor_cli;
