-- SPDX-License-Identifier: Apache-2.0
-- How many places of the gate's limits are taken, without taking one: for who asks whether a notification would go out. As the gate's own
-- statement counts (common/gate/gate_counters.c): a window that has passed takes the limit's number of places with it.
CREATE FUNCTION ingest.gate_places(now_minute bigint, now_day bigint, tenants text[], subjects text[], minute_drains bigint[], day_drains bigint[])
    RETURNS TABLE (n integer, minute_used bigint, day_used bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT i.n::integer - 1, greatest(0, coalesce(c.minute_used - i.minute_drain * greatest(0, now_minute - c.minute_at), 0)),
           greatest(0, coalesce(c.day_used - i.day_drain * greatest(0, now_day - c.day_at), 0))
    FROM unnest(tenants, subjects, minute_drains, day_drains) WITH ORDINALITY AS i (tenant_id, subject, minute_drain, day_drain, n)
    LEFT JOIN ingest.gate_counters c ON c.tenant_id = i.tenant_id AND c.subject = i.subject
$$;
GRANT EXECUTE ON FUNCTION ingest.gate_places(bigint, bigint, text[], text[], bigint[], bigint[]) TO stentor_gateway;
