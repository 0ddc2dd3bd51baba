-- SPDX-License-Identifier: Apache-2.0
-- In how many milliseconds the next item's time comes (feed.due): nothing is looked for before. NULL: no item waits for a time.
CREATE FUNCTION feed.due_in() RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT ceil(extract(epoch FROM least(i.snoozed_until, i.expires_at) - now()) * 1000)::bigint FROM feed.items i
    WHERE i.snoozed_until IS NOT NULL OR i.expires_at IS NOT NULL
    ORDER BY least(i.snoozed_until, i.expires_at) LIMIT 1
$$;
GRANT EXECUTE ON FUNCTION feed.due_in() TO stentor_gateway;
