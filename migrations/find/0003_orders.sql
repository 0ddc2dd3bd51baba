-- SPDX-License-Identifier: Apache-2.0
-- What gateway shows of orders, without who ordered. In schema stentor, as archiver/0002 says; the statements are those of `stentor order`.

-- Orders in a state, the newest first: by when they were placed, those that have ended by when they ended; before (until, before_id).
CREATE FUNCTION stentor.orders_listed(of_tenant text, of_state text, until timestamptz, before_id uuid, most integer)
    RETURNS TABLE (at timestamptz, correlation_id uuid, order_id uuid, basket_id uuid, state text, total text, currency text,
                   placed_at timestamptz, finished_at timestamptz, next_attempt_at timestamptz, attempts integer, version integer)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF of_state = 'Placed' THEN
        RETURN QUERY
        SELECT s.order_placed_date, s.correlation_id, s.order_id, s.basket_id, s.current_state, s.total_money::text, s.currency,
               s.order_placed_date, s.finished_at, s.wait_due, s.timeout_retry_count, s.version
        FROM order_saga.order_state s
        WHERE s.current_state = 'Placed' AND s.tenant_id = of_tenant AND s.order_placed_date <= until
          AND (s.order_placed_date < until OR s.correlation_id < before_id)
        ORDER BY s.order_placed_date DESC, s.correlation_id DESC LIMIT most;
    ELSE
        RETURN QUERY
        SELECT s.finished_at, s.correlation_id, s.order_id, s.basket_id, s.current_state, s.total_money::text, s.currency,
               s.order_placed_date, s.finished_at, NULL::timestamptz, s.timeout_retry_count, s.version
        FROM order_saga.order_state s
        WHERE s.finished_at IS NOT NULL AND s.current_state = of_state AND s.tenant_id = of_tenant AND s.finished_at <= until
          AND (s.finished_at < until OR s.correlation_id < before_id)
        ORDER BY s.finished_at DESC, s.correlation_id DESC LIMIT most;
    END IF;
END
$$;

-- One order by its correlation or order id, wherever it is.
CREATE FUNCTION stentor.order_shown(of_tenant text, of_id uuid)
    RETURNS TABLE (correlation_id text, order_id text, basket_id text, state text, total text, currency text, placed_at timestamptz,
                   finished_at timestamptz, next_attempt_at timestamptz, attempts integer, version integer, archived boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT s.correlation_id::text, s.order_id::text, s.basket_id::text, s.current_state, s.total_money::text, s.currency, s.order_placed_date,
           s.finished_at, CASE WHEN s.current_state = 'Placed' THEN s.wait_due END, s.timeout_retry_count, s.version, false
    FROM order_saga.order_state s WHERE s.tenant_id = of_tenant AND (s.correlation_id = of_id OR s.order_id = of_id)
    UNION ALL
    SELECT a.correlation_id, a.order_id, a.basket_id, a.current_state, (a.total_micros / 1000000.0)::numeric(18, 2)::text, a.currency,
           a.order_placed_date, a.finished_at, NULL, a.timeout_retry_count, a.version, true
    FROM order_saga.order_archive a WHERE a.tenant_id = of_tenant AND (a.correlation_id = of_id::text OR a.order_id = of_id::text)
    UNION ALL
    SELECT l.correlation_id, l.order_id, l.basket_id, l.current_state, (l.total_micros / 1000000.0)::numeric(18, 2)::text, l.currency,
           l.order_placed_date, l.finished_at, NULL, l.timeout_retry_count, l.version, true
    FROM order_saga.late_orders l WHERE l.tenant_id = of_tenant AND (l.correlation_id = of_id::text OR l.order_id = of_id::text)
    LIMIT 1
    $$;

-- What changed it, and what contradicted it, in the order of the log; at most `most`. Duplicates and stale time-outs change nothing and are
-- many: they are left out.
CREATE FUNCTION stentor.order_transitions(of_tenant text, of_id uuid, most integer)
    RETURNS TABLE (event text, verdict text, from_state text, to_state text, at timestamptz, message_id text, reason text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH o AS MATERIALIZED (SELECT s.* FROM stentor.order_shown(of_tenant, of_id) s)
    SELECT t.event_type, t.verdict, t.from_state, t.to_state, t.at, t.message_id, t.reason FROM (
        SELECT i.event_type, i.verdict, i.from_state, i.to_state, coalesce(i.consumed, i.received) AS at, i.message_id, i.reason, i.sequence
        FROM o, order_saga.inbox_state i
        WHERE i.correlation_id = o.correlation_id::uuid AND i.tenant_id = of_tenant AND i.verdict = 'applied' AND NOT o.archived
        UNION ALL
        SELECT i.event_type, i.verdict, i.from_state, i.to_state, coalesce(i.consumed, i.received), i.message_id, i.reason, i.sequence
        FROM o, order_saga.inbox_state i
        WHERE i.correlation_id = o.correlation_id::uuid AND i.tenant_id = of_tenant AND i.verdict = 'conflict'
        UNION ALL
        SELECT a.event_type, 'applied', a.from_state, a.to_state, a.consumed, a.message_id, a.reason, a.sequence
        FROM o, order_saga.order_transitions a
        WHERE a.correlation_id = o.correlation_id AND a.tenant_id = of_tenant AND a.finished_at = o.finished_at AND o.archived
        UNION ALL
        SELECT l.event_type, 'applied', l.from_state, l.to_state, l.consumed, l.message_id, l.reason, l.sequence
        FROM o, order_saga.late_transitions l
        WHERE l.correlation_id = o.correlation_id AND l.tenant_id = of_tenant AND l.finished_at = o.finished_at AND o.archived) t
    ORDER BY t.sequence LIMIT most
    $$;

GRANT EXECUTE ON FUNCTION stentor.orders_listed(text, text, timestamptz, uuid, integer), stentor.order_shown(text, uuid),
    stentor.order_transitions(text, uuid, integer) TO stentor_gateway;
