-- SPDX-License-Identifier: Apache-2.0
-- What a tenant has used of its limits by now, for the API: of all that it sends (subject '') and of each channel (':sms'). A window that has passed
-- takes the limit's own number of places with it (0002). No row: nothing, or no limit.
CREATE FUNCTION ingest.limits_used(of_tenant text)
    RETURNS TABLE (subject text, minute_used bigint, day_used bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT c.subject, greatest(0, c.minute_used - c.minute_drain * greatest(0, floor(extract(epoch FROM now()) / 60)::bigint - c.minute_at)),
           greatest(0, c.day_used - c.day_drain * greatest(0, floor(extract(epoch FROM now()) / 86400)::bigint - c.day_at))
    FROM ingest.gate_counters c
    WHERE c.tenant_id = of_tenant AND (c.subject = '' OR starts_with(c.subject, ':'))
    $$;
GRANT EXECUTE ON FUNCTION ingest.limits_used(text) TO stentor_gateway;
