-- SPDX-License-Identifier: Apache-2.0
-- A subscription's filter by category lets through what a vendor reports, too, which says no category: it is kept of the notifications of
-- tenants with such a filter, from the statuses that say it.

CREATE TABLE webhooks.categories (
    tenant_id       text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    category        text COLLATE "C" NOT NULL CHECK (category <> ''),
    seen_at         timestamptz      NOT NULL, -- when a status said it, to a day
    PRIMARY KEY (tenant_id, notification_id)
);
CREATE INDEX categories_seen ON webhooks.categories (seen_at);
SELECT stentor.isolate('webhooks.categories');

-- Those that nothing said for so long, at_most rows, the oldest first; -1: another process is at it.
CREATE FUNCTION webhooks.drop_categories(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('webhooks.categories')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    DELETE FROM webhooks.categories d USING (
        SELECT e.tenant_id, e.notification_id FROM webhooks.categories e
        WHERE e.seen_at < cutoff AND (for_tenant IS NULL OR e.tenant_id = for_tenant)
        ORDER BY e.seen_at LIMIT at_most) o
    WHERE d.tenant_id = o.tenant_id AND d.notification_id = o.notification_id AND d.seen_at < cutoff; -- seen meanwhile
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped = at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

GRANT SELECT, INSERT, UPDATE ON webhooks.categories TO stentor_webhook;
GRANT EXECUTE ON FUNCTION webhooks.drop_categories(text, text, text, integer) TO stentor_webhook;
