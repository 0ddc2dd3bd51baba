-- SPDX-License-Identifier: Apache-2.0
-- How far one notification is, and when that was last heard: why there is nothing to send again, and whether its dead letter
-- may still be on its way. In the schema stentor, because a rebuild swaps the whole schema archiver for another one.

CREATE FUNCTION stentor.notification_seen(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (status text, seen_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.status, greatest(n.ended_at, n.updated_at) FROM archiver.notifications n
    WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant
$$;
REVOKE ALL ON FUNCTION stentor.notification_seen(text, timestamptz, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.notification_seen(text, timestamptz, text) TO stentor_ingest;
