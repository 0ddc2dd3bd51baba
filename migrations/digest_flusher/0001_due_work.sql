-- SPDX-License-Identifier: Apache-2.0
-- Work that waits for a time. Rows come from DEFERRED, are claimed when due by any replica, emitted with an id that is
-- derived from the row, and deleted. A crash between emit and delete emits the same id again.

CREATE SCHEMA IF NOT EXISTS digest_flusher;

CREATE TABLE digest_flusher.due_work (
    work_id         text COLLATE "C" PRIMARY KEY, -- event id of the Deferred
    tenant_id       text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    reason          text COLLATE "C" NOT NULL,
    due_at          timestamptz      NOT NULL,
    subject         text COLLATE "C" NOT NULL,    -- where it goes when due
    event_id        text COLLATE "C" NOT NULL,    -- under which id
    payload         bytea            NOT NULL,
    claimed_until   timestamptz,
    created_at      timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX due_work_due_at ON digest_flusher.due_work (due_at);
SELECT stentor.isolate('digest_flusher.due_work');

CREATE FUNCTION digest_flusher.claim_due(lease interval, at_most integer)
    RETURNS TABLE (work_id text, tenant_id text, due_at timestamptz, subject text, event_id text, payload bytea)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.work_id FROM digest_flusher.due_work c
        WHERE c.due_at <= now() AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.due_at LIMIT at_most FOR UPDATE SKIP LOCKED)
    UPDATE digest_flusher.due_work w SET claimed_until = now() + lease
    FROM due WHERE w.work_id = due.work_id
    RETURNING w.work_id, w.tenant_id, w.due_at, w.subject, w.event_id, w.payload
$$;

CREATE FUNCTION digest_flusher.done(work_ids text[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH gone AS (DELETE FROM digest_flusher.due_work WHERE work_id = ANY (work_ids) RETURNING 1)
    SELECT count(*) FROM gone
$$;
-- When the next row is due that is not due yet: for sleeping until then. One step into the index.
CREATE FUNCTION digest_flusher.next_due() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT min(due_at) FROM digest_flusher.due_work WHERE due_at > now() $$;

-- How many wait and when the first is due: for metrics, it counts every row.
CREATE FUNCTION digest_flusher.backlog(OUT waiting bigint, OUT next_due_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*), min(due_at) FROM digest_flusher.due_work $$;
REVOKE ALL ON FUNCTION digest_flusher.claim_due(interval, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION digest_flusher.done(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION digest_flusher.next_due() FROM PUBLIC;
REVOKE ALL ON FUNCTION digest_flusher.backlog() FROM PUBLIC;

GRANT USAGE ON SCHEMA digest_flusher TO stentor_digest_flusher;
GRANT SELECT, INSERT, UPDATE ON digest_flusher.due_work TO stentor_digest_flusher;
GRANT EXECUTE ON FUNCTION digest_flusher.claim_due(interval, integer), digest_flusher.done(text[]), digest_flusher.next_due(), digest_flusher.backlog()
    TO stentor_digest_flusher;
