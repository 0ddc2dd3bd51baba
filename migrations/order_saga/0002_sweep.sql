-- SPDX-License-Identifier: Apache-2.0
-- Definer functions that look across tenants: the sweep of the outbox, waits that are overdue, figures for the metrics.

CREATE FUNCTION order_saga.claim_outbox(older_than interval, lease interval, at_most integer)
    RETURNS TABLE (sequence_number bigint, tenant_id text, message_id text, message_type text, correlation_id uuid,
                   destination_address text, body bytea, happened_at timestamptz, seen_at timestamptz, traceparent text,
                   enqueue_time timestamptz)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.sequence_number FROM order_saga.outbox_message c
        WHERE c.sent_time IS NULL AND c.enqueue_time < now() - older_than
          AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.sequence_number LIMIT at_most FOR UPDATE SKIP LOCKED),
    claimed AS (
        UPDATE order_saga.outbox_message m SET claimed_until = now() + lease
        FROM due WHERE m.sequence_number = due.sequence_number
        RETURNING m.*)
    SELECT c.sequence_number, c.tenant_id, c.message_id, c.message_type, c.correlation_id, c.destination_address, c.body,
           c.happened_at, c.seen_at, c.traceparent, c.enqueue_time FROM claimed c ORDER BY c.sequence_number
$$;

-- Waits that are over for `grace` and have not come back; each one again after another `grace`.
CREATE FUNCTION order_saga.claim_overdue(grace interval, at_most integer)
    RETURNS TABLE (tenant_id text, correlation_id uuid, token uuid, retries integer)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH due AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_state c
        WHERE c.current_state = 'Placed' AND c.wait_due < now() - grace
        ORDER BY c.wait_due LIMIT at_most FOR UPDATE SKIP LOCKED)
    UPDATE order_saga.order_state o SET wait_due = now()
    FROM due WHERE o.correlation_id = due.correlation_id AND o.tenant_id = due.tenant_id
    RETURNING o.tenant_id, o.correlation_id, o.place_order_timeout_token_id, o.timeout_retry_count
$$;

-- For the metrics: orders that are under way, those of them that have been for too long, events without an order, what is
-- not sent and since when.
CREATE FUNCTION order_saga.kpis(stalled_after interval, OUT active bigint, OUT stalled bigint, OUT unmatched bigint, OUT backlog bigint,
                          OUT oldest_unsent timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT o.active, o.stalled, (SELECT count(*) FROM order_saga.inbox_state i WHERE i.verdict = 'unmatched'), m.backlog, m.oldest
    FROM (SELECT count(*) AS active, count(*) FILTER (WHERE s.order_placed_date < now() - stalled_after) AS stalled
          FROM order_saga.order_state s WHERE s.current_state = 'Placed') o,
         (SELECT count(*) AS backlog, min(b.enqueue_time) AS oldest FROM order_saga.outbox_message b WHERE b.sent_time IS NULL) m
$$;

GRANT EXECUTE ON FUNCTION order_saga.claim_outbox(interval, interval, integer), order_saga.claim_overdue(interval, integer),
    order_saga.kpis(interval) TO stentor_order_saga;
