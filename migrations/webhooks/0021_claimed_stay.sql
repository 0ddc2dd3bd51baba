-- SPDX-License-Identifier: Apache-2.0
-- An old delivery that is being posted again stays: its row is the claim, and takes the outcome.

-- Looks at at_most rows, the oldest first; -1: another process is at it. A row's age is that of what happened last: matched, claimed, ended.
CREATE OR REPLACE FUNCTION webhooks.drop_deliveries(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('webhooks.deliveries')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    DELETE FROM webhooks.deliveries d USING (
        SELECT e.id FROM webhooks.deliveries e
        WHERE e.created_at < cutoff AND greatest(e.created_at, e.claimed_at, e.finished_at) < cutoff
          AND (for_tenant IS NULL OR e.tenant_id = for_tenant)
        ORDER BY e.created_at LIMIT at_most) o
    WHERE d.id = o.id AND greatest(d.created_at, d.claimed_at, d.finished_at) < cutoff; -- claimed meanwhile
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped = at_most THEN 'more' END;
    RETURN NEXT;
END
$$;
