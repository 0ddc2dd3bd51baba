-- SPDX-License-Identifier: Apache-2.0
-- The audit compares FEED with the ledger, so it needs to know which attempts were sent by the vendor `inapp`.
DROP FUNCTION dispatcher.audit_ledger(timestamptz, timestamptz, text, timestamptz, text, smallint, integer);
CREATE FUNCTION dispatcher.audit_ledger(since timestamptz, until timestamptz, for_tenant text, after_created timestamptz,
                                      after_id text, after_attempt smallint, at_most integer)
    RETURNS TABLE (created_at timestamptz, notification_id text, attempt smallint, tenant_id text, state text,
                   held boolean,          -- claimed: a process works on it, or it was given back unsent
                   unknown_count smallint,
                   by_vendor boolean,     -- false: the dispatcher's own decision
                   moved_at timestamptz,
                   by_inapp boolean)      -- sent: FEED has stored its item
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT l.created_at, l.notification_id, l.attempt, l.tenant_id, l.state, l.lease_until > now() OR l.owner = '',
           l.unknown_count, l.vendor IS NOT NULL, greatest(l.claimed_at, l.finished_at), coalesce(l.vendor = 'inapp', false)
    FROM dispatcher.ledger l
    WHERE l.created_at >= since AND l.created_at < until
      AND (l.created_at, l.notification_id, l.attempt) > (after_created, after_id, after_attempt)
      AND (for_tenant IS NULL OR l.tenant_id = for_tenant)
    ORDER BY l.created_at, l.notification_id, l.attempt LIMIT at_most
$$;
GRANT EXECUTE ON FUNCTION dispatcher.audit_ledger(timestamptz, timestamptz, text, timestamptz, text, smallint, integer)
    TO stentor_cli;
