-- SPDX-License-Identifier: Apache-2.0
-- What a POST under an Idempotency-Key was answered, for a repeat within 24 hours. As ingest.idempotency_keys; but a row is there before
-- the answer, so that a repeat waits, and the answer is sealed under the tenant's key: it may hold a secret.

CREATE TABLE gateway.idempotency_keys (
    tenant_id       text COLLATE "C" NOT NULL,
    scope           text COLLATE "C" NOT NULL, -- "POST /v1/api-keys"
    idempotency_key text COLLATE "C" NOT NULL,
    request_hash    bytea            NOT NULL, -- SHA-256 of path, query and body
    claimed_until   timestamptz      NOT NULL, -- by the process that works on it; which one it is, too
    response_status smallint,                  -- NULL: it is being worked on
    response_type   text,
    location        text,
    etag            text,
    response_body   bytea,                     -- Sealed
    created_at      timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, scope, idempotency_key)
);
CREATE INDEX idempotency_keys_created_at ON gateway.idempotency_keys (created_at);
SELECT stentor.isolate('gateway.idempotency_keys');

CREATE FUNCTION gateway.forget_idempotency_keys(older_than interval, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.tenant_id, c.scope, c.idempotency_key FROM gateway.idempotency_keys c
        WHERE c.created_at < now() - older_than ORDER BY c.created_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM gateway.idempotency_keys k USING old
        WHERE (k.tenant_id, k.scope, k.idempotency_key) = (old.tenant_id, old.scope, old.idempotency_key)
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON gateway.idempotency_keys TO stentor_gateway;
GRANT EXECUTE ON FUNCTION gateway.forget_idempotency_keys(interval, integer) TO stentor_gateway;
