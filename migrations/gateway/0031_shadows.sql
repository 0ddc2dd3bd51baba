-- SPDX-License-Identifier: Apache-2.0
-- A second kind of job: past requests rendered with another version of their template. How far a job is stands in its row, and it can be
-- cancelled. Processes of the version before claim audits only, and go on.

ALTER TABLE gateway.jobs
    ADD COLUMN progress jsonb, -- what its child said last
    DROP CONSTRAINT jobs_kind_check,
    ADD CONSTRAINT jobs_kind_check CHECK (kind IN ('audit', 'shadow')),
    DROP CONSTRAINT jobs_state_check,
    ADD CONSTRAINT jobs_state_check CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled'));
CREATE UNIQUE INDEX jobs_one_shadow ON gateway.jobs (tenant_id) WHERE kind = 'shadow' AND state IN ('waiting', 'running');

-- As before, of these kinds only.
CREATE FUNCTION gateway.claim_job(lease_s integer, tries_max integer, at_once integer, kinds text[])
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
    FROM (SELECT w.id FROM gateway.jobs w
          WHERE (w.state = 'waiting' OR (w.state = 'running' AND w.lease_until < now())) AND w.kind = ANY (kinds)
          ORDER BY w.created_at LIMIT 1) n
    WHERE j.id = n.id
    RETURNING j.id, j.tenant_id, j.kind, j.parameters::text, j.tries;
END
$$;

CREATE OR REPLACE FUNCTION gateway.claim_job(lease_s integer, tries_max integer, at_once integer)
    RETURNS TABLE (id text, tenant_id text, kind text, parameters text, tries integer)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT * FROM gateway.claim_job(lease_s, tries_max, at_once, ARRAY['audit']) $$;

-- As before, with how far it is; NULL: nothing new.
CREATE FUNCTION gateway.keep_job(of_id text, of_try integer, lease_s integer, of_progress text) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH kept AS (UPDATE gateway.jobs j SET lease_until = now() + make_interval(secs => lease_s), progress = coalesce(of_progress::jsonb, j.progress)
                  WHERE j.id = of_id AND j.tries = of_try AND j.state = 'running' RETURNING 1)
    SELECT EXISTS (SELECT FROM kept)
    $$;

-- The job is its process's no more, which notices within seconds. Of one that has ended nothing changes.
CREATE FUNCTION gateway.cancel_job(of_id text, of_tenant text, of_kind text) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH ended AS (
        UPDATE gateway.jobs j SET state = 'cancelled', lease_until = NULL, finished_at = now()
        WHERE j.id = of_id AND j.tenant_id = of_tenant AND j.kind = of_kind AND j.state IN ('waiting', 'running') RETURNING 1)
    SELECT EXISTS (SELECT FROM ended)
    $$;
GRANT EXECUTE ON FUNCTION gateway.claim_job(integer, integer, integer, text[]), gateway.keep_job(text, integer, integer, text),
    gateway.cancel_job(text, text, text) TO stentor_gateway;
