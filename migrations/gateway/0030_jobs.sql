-- SPDX-License-Identifier: Apache-2.0
-- Jobs: what takes longer than a request. A row is the job, so any replica answers about it; a process runs it under a lease that it keeps
-- up. Of one whose process is gone the lease ends, and another takes it over, so often as tries allow; then it has failed, and says so.

CREATE SCHEMA IF NOT EXISTS gateway;
GRANT USAGE ON SCHEMA gateway TO stentor_gateway;

CREATE TABLE gateway.jobs (
    id          text COLLATE "C" NOT NULL PRIMARY KEY, -- job_
    tenant_id   text COLLATE "C" NOT NULL,             -- whose; 'platform': of all
    kind        text COLLATE "C" NOT NULL CHECK (kind IN ('audit')),
    parameters  jsonb            NOT NULL,
    state       text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    asked_by    text             NOT NULL,
    tries       integer          NOT NULL DEFAULT 0,
    lease_until timestamptz,                           -- of one that runs
    result      jsonb,                                 -- of one that is done
    error       text,                                  -- of one that failed
    created_at  timestamptz      NOT NULL DEFAULT now(),
    started_at  timestamptz,
    finished_at timestamptz
);
CREATE INDEX jobs_open ON gateway.jobs (created_at) WHERE state IN ('waiting', 'running');
SELECT stentor.isolate('gateway.jobs');
GRANT SELECT, INSERT ON gateway.jobs TO stentor_gateway;

-- The next job for a process; none when at_once run. One process claims at a time. Forgets what ended 30 days ago.
CREATE FUNCTION gateway.claim_job(lease_s integer, tries_max integer, at_once integer)
    RETURNS TABLE (id text, tenant_id text, kind text, parameters text, tries integer)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM gateway.jobs j WHERE j.state = 'waiting' OR (j.state = 'running' AND j.lease_until < now())) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('stentor.gateway.jobs', 0));
    DELETE FROM gateway.jobs j WHERE j.finished_at < now() - interval '30 days';
    UPDATE gateway.jobs j SET state = 'failed', finished_at = now(), lease_until = NULL, error = 'the process that ran it ended, each time'
        WHERE j.state = 'running' AND j.lease_until < now() AND j.tries >= tries_max;
    IF (SELECT count(*) FROM gateway.jobs j WHERE j.state = 'running' AND j.lease_until >= now()) >= at_once THEN
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE gateway.jobs j SET state = 'running', tries = j.tries + 1, started_at = coalesce(j.started_at, now()),
                              lease_until = now() + make_interval(secs => lease_s)
    FROM (SELECT w.id FROM gateway.jobs w WHERE w.state = 'waiting' OR (w.state = 'running' AND w.lease_until < now())
          ORDER BY w.created_at LIMIT 1) n
    WHERE j.id = n.id
    RETURNING j.id, j.tenant_id, j.kind, j.parameters::text, j.tries;
END
$$;

-- Keeps up the lease of the process's try. false: it is another's by now.
CREATE FUNCTION gateway.keep_job(of_id text, of_try integer, lease_s integer) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH kept AS (UPDATE gateway.jobs j SET lease_until = now() + make_interval(secs => lease_s)
                  WHERE j.id = of_id AND j.tries = of_try AND j.state = 'running' RETURNING 1)
    SELECT EXISTS (SELECT FROM kept)
    $$;

-- The end of a try: done with a result, failed with an error, or waiting again, as if it had not been. Twice is once.
CREATE FUNCTION gateway.end_job(of_id text, of_try integer, new_state text, of_result text, of_error text) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH ended AS (
        UPDATE gateway.jobs j SET state = new_state, result = of_result::jsonb, error = of_error, lease_until = NULL,
               tries = j.tries - (new_state = 'waiting')::integer, finished_at = CASE WHEN new_state <> 'waiting' THEN now() END
        WHERE j.id = of_id AND j.tries = of_try AND j.state = 'running' RETURNING 1)
    SELECT EXISTS (SELECT FROM ended)
    $$;
GRANT EXECUTE ON FUNCTION gateway.claim_job(integer, integer, integer), gateway.keep_job(text, integer, integer),
    gateway.end_job(text, integer, text, text, text) TO stentor_gateway;

-- An audit reads what the command line's does.
GRANT USAGE ON SCHEMA ingest, dispatcher, digest_flusher TO stentor_gateway;
GRANT EXECUTE ON FUNCTION ingest.audit_accepts(timestamptz, timestamptz, text, bigint, integer), ingest.audit_since(),
    dispatcher.audit_ledger(timestamptz, timestamptz, text, timestamptz, text, smallint, integer), dispatcher.audit_since(),
    digest_flusher.audit_due(text, text, text, text, integer), digest_flusher.audit_digests(text, text, text, text, integer),
    stentor.audit_history(timestamptz, timestamptz, text, timestamptz, text, text, integer),
    stentor.audit_attempts(timestamptz, timestamptz, text, timestamptz, text, smallint, text, integer), stentor.history_audit_since()
    TO stentor_gateway;
