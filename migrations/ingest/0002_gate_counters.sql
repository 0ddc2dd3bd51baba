-- SPDX-License-Identifier: Apache-2.0
-- The counters of the limits: how many notifications were let through since the beginning of a minute and a day of UTC, for the tenant
-- (subject '') and for each recipient. A number above the limit means that some wait for a later minute: each window that passes takes
-- `drain` off it. One row a subject, updated in place.

CREATE TABLE ingest.gate_counters (
    tenant_id    text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL, -- '', "rcp_...", or the hex of an address hash
    minute_at    bigint           NOT NULL, -- minutes since 1970
    minute_used  bigint           NOT NULL,
    minute_drain bigint           NOT NULL CHECK (minute_drain > 0),
    day_at       bigint           NOT NULL, -- days since 1970
    day_used     bigint           NOT NULL,
    day_drain    bigint           NOT NULL CHECK (day_drain > 0),
    PRIMARY KEY (tenant_id, subject)
) WITH (fillfactor = 70); -- updates stay in their page and touch no index
SELECT stentor.isolate('ingest.gate_counters');

-- Drops the counters that have drained: they hold no notification back any more.
CREATE FUNCTION ingest.forget_gate_counters(at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.tenant_id, c.subject FROM ingest.gate_counters c
        WHERE c.day_at + c.day_used / c.day_drain + 1 < floor(extract(epoch FROM now()) / 86400)
          AND c.minute_at + c.minute_used / c.minute_drain + 1 < floor(extract(epoch FROM now()) / 60)
        LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM ingest.gate_counters k USING old
        WHERE (k.tenant_id, k.subject) = (old.tenant_id, old.subject)
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

GRANT SELECT, INSERT, UPDATE ON ingest.gate_counters TO stentor_ingest;
GRANT EXECUTE ON FUNCTION ingest.forget_gate_counters(integer) TO stentor_ingest;
