-- SPDX-License-Identifier: Apache-2.0
-- How far one notification is: why there is nothing to send again. In the schema stentor, because a rebuild swaps the whole
-- schema history for another one.

CREATE FUNCTION stentor.notification_status(of_tenant text, of_created timestamptz, of_id text) RETURNS TABLE (status text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.status FROM history.notifications n
    WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant
$$;
REVOKE ALL ON FUNCTION stentor.notification_status(text, timestamptz, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.notification_status(text, timestamptz, text) TO stentor_ingest;
