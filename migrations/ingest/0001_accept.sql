-- SPDX-License-Identifier: Apache-2.0
-- Accept: what a 202 stands for. A group commit writes one row per tenant and lane that holds all of its requests, so the cost of
-- a row, an index entry and a commit is shared by the group. A request with an idempotency key has a row of its own in the second table.

CREATE SCHEMA ingest;

CREATE TABLE ingest.accept_log (
    accept_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id        text COLLATE "C" NOT NULL,
    accepted_at      timestamptz      NOT NULL,
    notification_ids text[] COLLATE "C" NOT NULL,
    events           bytea            NOT NULL, -- packed stentor.v1 events with their subjects: common/bus/events/frames.h
    published_at     timestamptz,
    claimed_until    timestamptz                -- a sweep publishes it again until then
);
-- Sealed bytes do not compress: trying costs about half of what a row costs Postgres (measured: 9-10 us to 4.5-5.5 us a
-- notification in group commits of 100).
ALTER TABLE ingest.accept_log ALTER COLUMN events SET STORAGE EXTERNAL;
CREATE INDEX accept_log_unpublished ON ingest.accept_log (accept_id) WHERE published_at IS NULL;
CREATE INDEX accept_log_accepted_at ON ingest.accept_log USING brin (accepted_at);
SELECT stentor.isolate('ingest.accept_log');

CREATE TABLE ingest.idempotency_keys (
    tenant_id       text COLLATE "C" NOT NULL,
    scope           text COLLATE "C" NOT NULL, -- "POST /v1/notifications", "evt"
    idempotency_key text COLLATE "C" NOT NULL,
    request_hash    bytea            NOT NULL, -- SHA-256 of the body
    response_status smallint         NOT NULL,
    response_body   text             NOT NULL,
    created_at      timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, scope, idempotency_key)
);
CREATE INDEX idempotency_keys_created_at ON ingest.idempotency_keys (created_at);
SELECT stentor.isolate('ingest.idempotency_keys');

-- The sweep works across tenants: it has two definer functions instead of a right to see everything.
CREATE FUNCTION ingest.claim_unpublished(older_than interval, lease interval, at_most integer)
    RETURNS TABLE (accept_id bigint, tenant_id text, events bytea)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.accept_id FROM ingest.accept_log c
        WHERE c.published_at IS NULL AND c.accepted_at < now() - older_than
          AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.accept_id LIMIT at_most FOR UPDATE SKIP LOCKED)
    UPDATE ingest.accept_log l SET claimed_until = now() + lease
    FROM due WHERE l.accept_id = due.accept_id
    RETURNING l.accept_id, l.tenant_id, l.events
$$;

CREATE FUNCTION ingest.forget_idempotency_keys(older_than interval, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.tenant_id, c.scope, c.idempotency_key FROM ingest.idempotency_keys c
        WHERE c.created_at < now() - older_than ORDER BY c.created_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM ingest.idempotency_keys k USING old
        WHERE (k.tenant_id, k.scope, k.idempotency_key) = (old.tenant_id, old.scope, old.idempotency_key)
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

GRANT USAGE ON SCHEMA ingest TO stentor_ingest, stentor_cli;
GRANT SELECT, INSERT, UPDATE ON ingest.accept_log, ingest.idempotency_keys TO stentor_ingest;
GRANT EXECUTE ON FUNCTION ingest.claim_unpublished(interval, interval, integer), ingest.forget_idempotency_keys(interval, integer)
    TO stentor_ingest;
