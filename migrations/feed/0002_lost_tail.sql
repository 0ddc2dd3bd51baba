-- SPDX-License-Identifier: Apache-2.0
-- A log that lost its tail gives old numbers to new messages: items that were folded from what is lost must not count as stored later
-- than what is said now of all items, or of a key. As people.forget_lost_tail; counters keep their version, which may not fall.

CREATE FUNCTION feed.forget_lost_tail(first_sequence bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE feed.items SET stored_sequence = first_sequence - 1 WHERE stored_sequence >= first_sequence $$;
GRANT EXECUTE ON FUNCTION feed.forget_lost_tail(bigint) TO stentor_gateway;
