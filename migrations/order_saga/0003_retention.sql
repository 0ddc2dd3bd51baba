-- SPDX-License-Identifier: Apache-2.0
-- Retention, at_most rows a call; for_tenant null: of all.

CREATE FUNCTION order_saga.forget_outbox(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.sequence_number FROM order_saga.outbox_message c
        WHERE c.sent_time < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.sent_time LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM order_saga.outbox_message m USING old WHERE m.sequence_number = old.sequence_number RETURNING 1)
    SELECT count(*) FROM gone
$$;

-- Unmatched events too: an order that has not come by then does not come.
CREATE FUNCTION order_saga.forget_inbox(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.message_id, c.consumer_id, c.tenant_id FROM order_saga.inbox_state c
        WHERE coalesce(c.consumed, c.received) < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY coalesce(c.consumed, c.received) LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.inbox_state i USING old
        WHERE i.message_id = old.message_id AND i.consumer_id = old.consumer_id AND i.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;

CREATE FUNCTION order_saga.archive_orders(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_state c
        WHERE c.finished_at < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.order_state o USING old
        WHERE o.correlation_id = old.correlation_id AND o.tenant_id = old.tenant_id RETURNING o.*),
    kept AS (INSERT INTO order_saga.order_archive SELECT g.*, now() FROM gone g ON CONFLICT DO NOTHING)
    SELECT count(*) FROM gone
$$;

CREATE FUNCTION order_saga.drop_archived(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_archive c
        WHERE c.finished_at < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.order_archive o USING old
        WHERE o.correlation_id = old.correlation_id AND o.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;

GRANT EXECUTE ON FUNCTION order_saga.forget_outbox(interval, text, integer), order_saga.forget_inbox(interval, text, integer),
    order_saga.archive_orders(interval, text, integer), order_saga.drop_archived(interval, text, integer) TO stentor_order_saga;
