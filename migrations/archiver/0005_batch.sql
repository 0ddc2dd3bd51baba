-- SPDX-License-Identifier: Apache-2.0
-- Which batch made a notification, and a batch's totals, counted from what became of each of its notifications.

ALTER TABLE archiver.notifications ADD COLUMN batch_id text COLLATE "C";
-- Not over the status as well: an index over a column that changes with every event makes each such update of any row, of a
-- batch or not, write all index entries of the row anew.
CREATE INDEX notifications_batch ON archiver.notifications (batch_id) WHERE batch_id IS NOT NULL;

-- In the schema stentor, because a rebuild swaps the whole schema archiver for another one. `since`: no notification of the
-- batch is older, so older months are not looked at.
CREATE FUNCTION stentor.batch_totals(of_tenant text, of_batch text, since timestamptz)
    RETURNS TABLE (status text, notifications bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.status, count(*) FROM archiver.notifications n
    WHERE n.batch_id = of_batch AND n.tenant_id = of_tenant AND n.created_at >= since - interval '1 minute'
    GROUP BY n.status
$$;
REVOKE ALL ON FUNCTION stentor.batch_totals(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.batch_totals(text, text, timestamptz) TO stentor_ingest;
