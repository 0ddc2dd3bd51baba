-- SPDX-License-Identifier: Apache-2.0
-- The audit's definer functions for the accept log. They look across tenants and return ids and times; the second one also the sealed
-- events that a repair publishes again. They are read page by page, by key, so that neither side ever holds more than a page.

-- Rows accepted in [since, until) with an accept_id above `after` (NULL: from the first one of the span).
CREATE FUNCTION ingest.audit_accepts(since timestamptz, until timestamptz, for_tenant text, after bigint, at_most integer)
    RETURNS TABLE (accept_id bigint, tenant_id text, notification_ids text[], accepted_at timestamptz,
                   published_at timestamptz, event_bytes integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT l.accept_id, l.tenant_id, l.notification_ids, l.accepted_at, l.published_at, octet_length(l.events)
    FROM ingest.accept_log l
    -- OFFSET 0: otherwise min() is found by reading along the primary key, past every row before the span.
    WHERE l.accept_id > coalesce(after, (SELECT min(f.accept_id) - 1 FROM (
              SELECT s.accept_id FROM ingest.accept_log s WHERE s.accepted_at >= since AND s.accepted_at < until OFFSET 0) f))
      AND l.accepted_at >= since AND l.accepted_at < until
      AND (for_tenant IS NULL OR l.tenant_id = for_tenant)
    ORDER BY l.accept_id LIMIT at_most
$$;

CREATE FUNCTION ingest.audit_events(accept_ids bigint[]) RETURNS TABLE (accept_id bigint, events bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT l.accept_id, l.events FROM ingest.accept_log l WHERE l.accept_id = ANY (accept_ids) ORDER BY l.accept_id $$;

GRANT EXECUTE ON FUNCTION ingest.audit_accepts(timestamptz, timestamptz, text, bigint, integer), ingest.audit_events(bigint[])
    TO stentor_cli;
