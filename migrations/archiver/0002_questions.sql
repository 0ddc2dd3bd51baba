-- SPDX-License-Identifier: Apache-2.0
-- What ingest asks history for. In schema stentor, because a rebuild replaces the schema archiver as a whole; the names in the functions
-- are looked up when they run, so they read whichever is there.

-- How many notifications of a batch have which status. `since`: no notification of the batch is older, so older months are not read.
CREATE FUNCTION stentor.batch_totals(of_tenant text, of_batch text, since timestamptz)
    RETURNS TABLE (status text, notifications bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.status, count(*) FROM archiver.notifications n
    WHERE n.batch_id = of_batch AND n.tenant_id = of_tenant AND n.created_at >= since - interval '1 minute'
    GROUP BY n.status
$$;

-- How far one notification is, and when its last event came: why there is nothing to send again, and whether its dead letter
-- may still be on its way.
CREATE FUNCTION stentor.notification_seen(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (status text, seen_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.status, greatest(n.ended_at, n.updated_at) FROM archiver.notifications n
    WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant
$$;

GRANT EXECUTE ON FUNCTION stentor.batch_totals(text, text, timestamptz), stentor.notification_seen(text, timestamptz, text)
    TO stentor_ingest;
