-- SPDX-License-Identifier: Apache-2.0
-- Rows that a process left because NATS was away or had no room: it knows their ids, so they need not be so old that no process can have
-- them on their way.
CREATE FUNCTION ingest.claim_left(ids bigint[], lease interval)
    RETURNS TABLE (accept_id bigint, tenant_id text, events bytea)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH due AS MATERIALIZED (
        SELECT c.accept_id FROM ingest.accept_log c
        WHERE c.accept_id = ANY (ids) AND c.published_at IS NULL AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.accept_id FOR UPDATE SKIP LOCKED),
    claimed AS (
        UPDATE ingest.accept_log l SET claimed_until = now() + lease
        FROM due WHERE l.accept_id = due.accept_id
        RETURNING l.accept_id, l.tenant_id, l.events)
    SELECT claimed.accept_id, claimed.tenant_id, claimed.events FROM claimed ORDER BY 1
$$;
REVOKE ALL ON FUNCTION ingest.claim_left(bigint[], interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ingest.claim_left(bigint[], interval) TO stentor_ingest;
