-- SPDX-License-Identifier: Apache-2.0
-- What vendors said within the last week: by it a repeat is recognised that the log's window of duplicates has forgotten. And a
-- look-up of a mail by the vendor's own id, for callbacks that name no notification of ours.

CREATE TABLE dispatcher.callback_events (
    occurred_at timestamptz      NOT NULL, -- at the vendor: a repeat has the same
    event_id    text COLLATE "C" NOT NULL, -- of the status: derived from vendor, the vendor's ids, kind and time
    tenant_id   text COLLATE "C" NOT NULL,
    sequence    bigint           NOT NULL, -- in SETTLE: the same message again after a crash is no repeat
    noted_at    timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (occurred_at, event_id)
);
SELECT stentor.isolate('dispatcher.callback_events');
GRANT SELECT, INSERT ON dispatcher.callback_events TO stentor_dispatcher;

-- Only ids that are the vendor's own: those that are made of the notification's id need no look-up.
CREATE INDEX ledger_vendor_message ON dispatcher.ledger USING hash (vendor_message_id)
    WHERE NOT starts_with(vendor_message_id COLLATE "C", notification_id || '@');

-- Looks at at_most rows, the oldest first; -1: another process is at it.
CREATE FUNCTION dispatcher.drop_callback_events(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('dispatcher.callback_events')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    DELETE FROM dispatcher.callback_events d USING (
        SELECT e.occurred_at, e.event_id FROM dispatcher.callback_events e
        WHERE e.occurred_at < cutoff AND e.noted_at < cutoff AND (for_tenant IS NULL OR e.tenant_id = for_tenant)
        ORDER BY e.occurred_at, e.event_id LIMIT at_most) o
    WHERE d.occurred_at = o.occurred_at AND d.event_id = o.event_id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped = at_most THEN 'more' END;
    RETURN NEXT;
END
$$;
GRANT EXECUTE ON FUNCTION dispatcher.drop_callback_events(text, text, text, integer) TO stentor_dispatcher;
