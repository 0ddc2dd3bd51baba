-- SPDX-License-Identifier: Apache-2.0
-- Work that can be cancelled while it waits, and work that goes out as a word on STATUS instead of itself. What becomes
-- of a row is decided once, in a committed transaction and at the latest by its first claim: a cancellation never
-- touches a claimed row, because a process that died may have published it.

ALTER TABLE digest_flusher.due_work
    ADD COLUMN cancel_key  text COLLATE "C", -- null: cannot be cancelled
    ADD COLUMN caused_at   timestamptz,      -- when what it is about was caused; a cancellation has a time too
    ADD COLUMN status      text COLLATE "C" CHECK (status IN ('queued', 'suppressed', 'superseded')), -- null: the payload goes out
    ADD COLUMN reason_code text COLLATE "C", -- of the status
    ADD COLUMN detail      text,             -- of the status, for a person
    ADD COLUMN window_id   text COLLATE "C"; -- of the status: the digest
CREATE INDEX due_work_cancel ON digest_flusher.due_work (tenant_id, cancel_key) WHERE cancel_key IS NOT NULL;

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

-- Cancellable work that has gone out: delivered once more after its cancellation it must not be told as suppressed.
CREATE TABLE digest_flusher.emitted (
    work_id    text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    emitted_at timestamptz      NOT NULL DEFAULT now()
);
CREATE INDEX emitted_at ON digest_flusher.emitted (emitted_at);
SELECT stentor.isolate('digest_flusher.emitted');

-- In the place of claim_due, which knew nothing of `status`: a digest-flusher of before this migration claims nothing
-- from here on, instead of publishing what was cancelled.
DROP FUNCTION digest_flusher.claim_due(interval, integer);
CREATE FUNCTION digest_flusher.claim_work(lease interval, at_most integer)
    RETURNS TABLE (work_id text, due_at timestamptz, subject text, event_id text, payload bytea,
                   status text, reason_code text, detail text, window_id text)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.work_id, c.tenant_id, c.cancel_key, c.caused_at, c.status, c.claimed_until FROM digest_flusher.due_work c
        WHERE c.due_at <= now() AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.due_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    judged AS (
        -- A deferral and its cancellation that were stored at the same moment did not see each other.
        SELECT due.work_id, x.reason FROM due LEFT JOIN digest_flusher.cancellations x
            ON due.status IS NULL AND due.claimed_until IS NULL
            AND x.tenant_id = due.tenant_id AND x.cancel_key = due.cancel_key AND x.before_at > due.caused_at)
    UPDATE digest_flusher.due_work w SET claimed_until = now() + lease,
        status = CASE WHEN judged.reason IS NULL THEN w.status ELSE 'suppressed' END,
        reason_code = CASE WHEN judged.reason IS NULL THEN w.reason_code ELSE 'obsolete' END,
        detail = coalesce(judged.reason, w.detail)
    FROM judged WHERE w.work_id = judged.work_id
    RETURNING w.work_id, w.due_at, w.subject, w.event_id, w.payload, w.status, w.reason_code, w.detail, w.window_id
$$;

CREATE OR REPLACE FUNCTION digest_flusher.done(work_ids text[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH gone AS (DELETE FROM digest_flusher.due_work d WHERE d.work_id = ANY (work_ids) RETURNING d.work_id, d.tenant_id, d.cancel_key),
    kept AS (INSERT INTO digest_flusher.emitted (work_id, tenant_id)
             SELECT g.work_id, g.tenant_id FROM gone g WHERE g.cancel_key IS NOT NULL ON CONFLICT DO NOTHING)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION digest_flusher.claim_work(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION digest_flusher.claim_work(interval, integer) TO stentor_digest_flusher;
GRANT SELECT, INSERT, UPDATE ON digest_flusher.cancellations TO stentor_digest_flusher;
GRANT SELECT ON digest_flusher.emitted TO stentor_digest_flusher;
