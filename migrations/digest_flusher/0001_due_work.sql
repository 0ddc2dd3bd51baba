-- SPDX-License-Identifier: Apache-2.0
-- Work that waits for a time. Rows come from DEFERRED, are claimed when due by any replica, emitted with an id that is
-- derived from the row, and deleted. A crash between emit and delete emits the same id again.
-- What becomes of a row is decided once, in a committed transaction and at the latest by its first claim: a cancellation never
-- changes a claimed row, because a process that died may have published it.

CREATE SCHEMA digest_flusher;

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
    created_at      timestamptz      NOT NULL DEFAULT now(),
    cancel_key      text COLLATE "C", -- null: cannot be cancelled
    caused_at       timestamptz,      -- of what it is about; a cancellation stops what was caused before it
    status          text COLLATE "C" CHECK (status IN ('queued', 'suppressed', 'superseded')), -- goes out on STATUS; null: the payload goes out
    reason_code     text COLLATE "C", -- of the status
    detail          text,             -- of the status, for a reader
    window_id       text COLLATE "C", -- of the status: the digest
    recipient_id    text COLLATE "C", -- whose preferences may stop it; null: no recipient's
    category        text COLLATE "C",
    channel         text COLLATE "C"
);
CREATE INDEX due_work_due_at ON digest_flusher.due_work (due_at);
CREATE INDEX due_work_cancel ON digest_flusher.due_work (tenant_id, cancel_key) WHERE cancel_key IS NOT NULL;
SELECT stentor.isolate('digest_flusher.due_work');

-- What was cancelled, kept for longer than DEFERRED keeps its events (30 days): a deferral may arrive after its cancellation.
CREATE TABLE digest_flusher.cancellations (
    tenant_id   text COLLATE "C" NOT NULL,
    cancel_key  text COLLATE "C" NOT NULL,
    before_at   timestamptz      NOT NULL, -- what was caused earlier is obsolete
    reason      text             NOT NULL,
    recorded_at timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, cancel_key)
);
CREATE INDEX cancellations_recorded_at ON digest_flusher.cancellations (recorded_at);
SELECT stentor.isolate('digest_flusher.cancellations');

-- Stoppable work that has gone out: delivered again after its cancellation it must not be reported as suppressed.
CREATE TABLE digest_flusher.emitted (
    work_id    text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    emitted_at timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX emitted_at ON digest_flusher.emitted (emitted_at);
SELECT stentor.isolate('digest_flusher.emitted');

-- Deletes what was emitted.
CREATE FUNCTION digest_flusher.done(work_ids text[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH gone AS (
        DELETE FROM digest_flusher.due_work d WHERE d.work_id = ANY (work_ids)
        RETURNING d.work_id, d.tenant_id, d.cancel_key IS NOT NULL OR d.recipient_id IS NOT NULL AS is_stoppable),
    kept AS (INSERT INTO digest_flusher.emitted (work_id, tenant_id)
             SELECT g.work_id, g.tenant_id FROM gone g WHERE g.is_stoppable ON CONFLICT DO NOTHING)
    SELECT count(*) FROM gone
$$;

-- When the next row is due that is not due yet: for sleeping until then. One step into the index.
CREATE FUNCTION digest_flusher.next_due() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT min(due_at) FROM digest_flusher.due_work WHERE due_at > now() $$;

-- How many wait and when the first is due: for metrics, it counts every row, and so it may scan (the role plans no sequential scans).
CREATE FUNCTION digest_flusher.backlog(OUT waiting bigint, OUT next_due_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = on
    AS $$ SELECT count(*), min(due_at) FROM digest_flusher.due_work $$;

GRANT USAGE ON SCHEMA digest_flusher TO stentor_digest_flusher, stentor_cli;
GRANT SELECT, INSERT, UPDATE ON digest_flusher.due_work, digest_flusher.cancellations TO stentor_digest_flusher;
GRANT SELECT ON digest_flusher.emitted TO stentor_digest_flusher;
GRANT EXECUTE ON FUNCTION digest_flusher.done(text[]), digest_flusher.next_due(), digest_flusher.backlog() TO stentor_digest_flusher;
