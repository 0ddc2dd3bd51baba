-- SPDX-License-Identifier: Apache-2.0
-- What one notification waits for, and which digest took it up, for who asks why. work_ids: under which it may wait; a deferral's id is
-- derived from the notification and the reason. One row at most of each kind.
CREATE FUNCTION digest_flusher.notification_waits(of_tenant text, of_notification text, work_ids text[], of_window text)
    RETURNS TABLE (reason text, due_at timestamptz, window_id text, digest_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT * FROM (
        (SELECT w.reason, w.due_at, NULL::text, NULL::text FROM digest_flusher.due_work w
         WHERE w.work_id = ANY (work_ids) AND w.tenant_id = of_tenant AND w.notification_id = of_notification AND w.status IS NULL
         ORDER BY w.due_at LIMIT 1)
        UNION ALL
        (SELECT 'digest', d.due_at, d.window_id, NULL FROM digest_flusher.digest_items i
         JOIN digest_flusher.digest_windows d ON d.tenant_id = i.tenant_id AND d.window_id = i.window_id
         WHERE i.work_id = ANY (work_ids) AND i.payload IS NOT NULL AND i.tenant_id = of_tenant AND i.notification_id = of_notification
         ORDER BY d.due_at LIMIT 1)
        UNION ALL
        (SELECT NULL, NULL, d.window_id, d.digest_id FROM digest_flusher.digest_windows d
         WHERE d.tenant_id = of_tenant AND d.window_id = of_window AND d.digest_id IS NOT NULL AND d.digest_id <> of_notification)) AS kinds
$$;
GRANT EXECUTE ON FUNCTION digest_flusher.notification_waits(text, text, text[], text) TO stentor_gateway;
