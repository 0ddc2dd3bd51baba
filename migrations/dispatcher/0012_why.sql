-- SPDX-License-Identifier: Apache-2.0
-- Where one notification's last attempt stands in the ledger, and how many claims of all its attempts have had no outcome.
CREATE FUNCTION dispatcher.notification_claim(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (attempt smallint, state text, vendor text, claimed_at timestamptz, lease_until timestamptz, due_at timestamptz,
                   unknown_count bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT l.attempt, l.state, l.vendor, l.claimed_at, l.lease_until, l.due_at, sum(l.unknown_count) OVER ()
    FROM dispatcher.ledger l
    WHERE l.created_at = of_created AND l.notification_id = of_id AND l.tenant_id = of_tenant
    ORDER BY l.attempt DESC LIMIT 1
$$;
GRANT USAGE ON SCHEMA dispatcher TO stentor_gateway;
GRANT EXECUTE ON FUNCTION dispatcher.notification_claim(text, timestamptz, text) TO stentor_gateway;
