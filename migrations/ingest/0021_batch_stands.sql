-- SPDX-License-Identifier: Apache-2.0
-- Where a batch stands, for the list of its notifications: an empty page of a batch says what it waits for. No row: there is no such batch.
CREATE FUNCTION ingest.batch_stands(of_tenant text, of_batch text)
    RETURNS TABLE (status text, paused boolean, accepted bigint, ended_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT b.status, b.paused, b.accepted, b.ended_at FROM ingest.batches b WHERE b.id = of_batch AND b.tenant_id = of_tenant
    $$;
GRANT EXECUTE ON FUNCTION ingest.batch_stands(text, text) TO stentor_gateway;
