-- SPDX-License-Identifier: Apache-2.0
-- What was accepted, asked for by one notification's id: a 202 names an address where the notification can be read, and history has it a
-- moment later, or much later when the archiver is away.

-- An id that was made at acceptance has the time of its row, to the millisecond. Instead of BRIN, which finds a row only as long as the
-- table grows at its end: once retention has freed pages, every block range holds old rows and new ones. An entry is of a row, so a group
-- commit shares it.
DROP INDEX ingest.accept_log_accepted_at;
CREATE INDEX accept_log_accepted_at ON ingest.accept_log (accepted_at);

-- The events of the row that has this notification. of_created: the time in the id. An id that was derived from a cause (of a trigger, of a
-- guardian's copy) has another time than its row and is not found; no 202 names one.
CREATE FUNCTION ingest.accepted_events(of_tenant text, of_created timestamptz, of_id text) RETURNS TABLE (accepted_at timestamptz, events bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT l.accepted_at, l.events FROM ingest.accept_log l
    WHERE l.accepted_at >= of_created AND l.accepted_at < of_created + interval '1 millisecond'
      AND l.tenant_id = of_tenant AND of_id = ANY (l.notification_ids)
    LIMIT 1
    $$;
GRANT USAGE ON SCHEMA ingest TO stentor_gateway;
GRANT EXECUTE ON FUNCTION ingest.accepted_events(text, timestamptz, text) TO stentor_gateway;
