-- SPDX-License-Identifier: Apache-2.0
-- How long the oldest erasure waits that could go on, for metrics and `stentor doctor`: the command line executes them, and no service.

CREATE FUNCTION erasure.waiting() RETURNS TABLE (erasures bigint, oldest_s double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*), coalesce(extract(epoch FROM now() - min(q.requested_at)), 0)::double precision FROM erasure.open_requests() q $$;

GRANT USAGE ON SCHEMA erasure TO stentor_ingest;
GRANT EXECUTE ON FUNCTION erasure.waiting() TO stentor_cli, stentor_ingest;

-- What an export gives of orders (common/access).
GRANT SELECT ON order_saga.order_state, order_saga.order_archive, order_saga.late_orders, order_saga.inbox_state, order_saga.order_transitions,
    order_saga.late_transitions TO stentor_cli;
