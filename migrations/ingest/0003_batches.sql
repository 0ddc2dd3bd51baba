-- SPDX-License-Identifier: Apache-2.0
-- Batches: one template to many recipients. Members are kept as chunks of up to 1,000, each one sealed blob, so that a
-- million of them are about a thousand rows; a chunk's blob goes when its members are accepted or the batch has ended.

CREATE TABLE ingest.batches (
    id               text COLLATE "C" PRIMARY KEY, -- dbt_
    tenant_id        text COLLATE "C" NOT NULL,
    name             text             NOT NULL,
    category         text COLLATE "C" NOT NULL CHECK (category IN ('transactional', 'operational', 'security', 'reminder', 'marketing',
                                             'system', 'academic', 'billing', 'social', 'compliance')),
    channel          text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    priority         text COLLATE "C" NOT NULL CHECK (priority IN ('critical', 'high', 'normal', 'low')),
    template         text COLLATE "C" NOT NULL,
    template_version text COLLATE "C" NOT NULL, -- frozen when the batch was made
    locale           text             NOT NULL, -- of members that name none; empty: the template's first
    variables        bytea,                     -- for all members; sealed under the tenant's key; NULL: none
    scheduled_for    timestamptz,
    rate_per_second  integer          NOT NULL CHECK (rate_per_second >= 0), -- 0: no limit
    step             integer          NOT NULL CHECK (step BETWEEN 1 AND 1000), -- members that one commit accepts
    status           text COLLATE "C" NOT NULL CHECK (status IN ('draft', 'scheduled', 'running', 'completed', 'cancelled', 'failed')),
    paused           boolean          NOT NULL DEFAULT false,
    reason           text,                      -- why it failed
    total            bigint           NOT NULL DEFAULT 0, -- members
    broken           bigint           NOT NULL DEFAULT 0, -- lines of its parts that were refused
    chunks           integer          NOT NULL DEFAULT 0,
    next_chunk       integer          NOT NULL DEFAULT 0, -- the checkpoint: everything before it is accepted
    next_offset      integer          NOT NULL DEFAULT 0,
    accepted         bigint           NOT NULL DEFAULT 0, -- members before the checkpoint
    created_by       text             NOT NULL,           -- the API key's id
    created_at       timestamptz      NOT NULL,
    started_at       timestamptz,
    ended_at         timestamptz,
    holder           text,                      -- the process that runs it
    lease_until      timestamptz,
    create_key       text COLLATE "C",          -- Idempotency-Key of the request that made it
    create_hash      bytea,
    members_dropped  boolean          NOT NULL DEFAULT false, -- by retention
    UNIQUE (tenant_id, create_key)
);
CREATE INDEX batches_waiting ON ingest.batches (started_at) WHERE status IN ('scheduled', 'running');
CREATE INDEX batches_of_tenant ON ingest.batches (tenant_id, id);
-- The ended batches by mark and end, so that retention reads only what it drops.
CREATE INDEX batches_ended ON ingest.batches (members_dropped, (coalesce(ended_at, started_at, created_at)))
    WHERE status IN ('completed', 'cancelled', 'failed');
SELECT stentor.isolate('ingest.batches');

-- What was uploaded: a part that comes again is known by its number and a keyed hash of its bytes. It is never updated.
CREATE TABLE ingest.batch_parts (
    batch_id  text COLLATE "C" NOT NULL REFERENCES ingest.batches (id) ON DELETE CASCADE,
    part      integer          NOT NULL CHECK (part >= 0),
    tenant_id text COLLATE "C" NOT NULL,
    hash      bytea            NOT NULL,
    members   integer          NOT NULL,
    broken    integer          NOT NULL,
    added_at  timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (batch_id, part)
);
SELECT stentor.isolate('ingest.batch_parts');

CREATE TABLE ingest.batch_chunks (
    batch_id    text COLLATE "C" NOT NULL REFERENCES ingest.batches (id) ON DELETE CASCADE,
    number      integer          NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL,
    part        integer          NOT NULL, -- with the ordinal what its blob is bound to
    ordinal     integer          NOT NULL,
    first_index bigint           NOT NULL,
    members     integer          NOT NULL,
    started_at  timestamptz,               -- when its first member was made: the time in their ids
    data        bytea,                     -- common/campaign/batch_chunk.h; NULL: no longer needed
    PRIMARY KEY (batch_id, number)
);
SELECT stentor.isolate('ingest.batch_chunks');
ALTER TABLE ingest.batch_chunks ALTER COLUMN data SET STORAGE EXTERNAL; -- sealed bytes do not compress

-- Adds a part in one transaction: 'added'; 'repeated': it was there with the same bytes; 'other_body'; 'not_draft'; 'full';
-- 'missing'. It runs with its caller's rights, so row-level security decides which batches there are.
CREATE FUNCTION ingest.add_batch_part(of_batch text, number integer, of_hash bytea, broken_lines integer, counts integer[],
                                      blobs bytea[], at_most bigint)
    RETURNS TABLE (outcome text, members bigint, status text)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    b record;
    known bytea;
    added bigint := coalesce((SELECT sum(c) FROM unnest(counts) c), 0);
BEGIN
    SELECT * INTO b FROM ingest.batches t WHERE t.id = of_batch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'missing', 0::bigint, '';
        RETURN;
    END IF;
    SELECT p.hash INTO known FROM ingest.batch_parts p WHERE p.batch_id = of_batch AND p.part = number;
    IF FOUND THEN
        RETURN QUERY SELECT CASE WHEN known = of_hash THEN 'repeated' ELSE 'other_body' END, b.total, b.status;
        RETURN;
    ELSIF b.status <> 'draft' THEN
        RETURN QUERY SELECT 'not_draft', b.total, b.status;
        RETURN;
    ELSIF b.total + added > at_most THEN
        RETURN QUERY SELECT 'full', b.total, b.status;
        RETURN;
    END IF;
    INSERT INTO ingest.batch_parts (batch_id, part, tenant_id, hash, members, broken)
    VALUES (of_batch, number, b.tenant_id, of_hash, added, broken_lines);
    INSERT INTO ingest.batch_chunks (batch_id, number, tenant_id, part, ordinal, first_index, members, data)
    SELECT of_batch, b.chunks + i.n - 1, b.tenant_id, number, i.n - 1,
           b.total + sum(i.members) OVER (ORDER BY i.n) - i.members, i.members, i.data
    FROM unnest(counts, blobs) WITH ORDINALITY AS i (members, data, n);
    UPDATE ingest.batches t SET total = b.total + added, broken = b.broken + broken_lines, chunks = b.chunks + coalesce(cardinality(counts), 0)
    WHERE t.id = of_batch;
    RETURN QUERY SELECT 'added', b.total + added, b.status;
END
$$;

-- The runner works across tenants: this definer function leases it running batches, and scheduled ones whose time has come, that no
-- process holds; the batch that started first comes first.
CREATE FUNCTION ingest.claim_batches(claimant text, lease interval, at_most integer)
    RETURNS SETOF ingest.batches
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.id FROM ingest.batches c
        WHERE NOT c.paused AND (c.status = 'running' OR (c.status = 'scheduled' AND c.scheduled_for <= now()))
          AND (c.lease_until IS NULL OR c.lease_until < now())
        ORDER BY c.started_at NULLS LAST, c.id LIMIT at_most FOR UPDATE SKIP LOCKED)
    UPDATE ingest.batches b
    SET holder = claimant, lease_until = now() + lease, status = 'running', started_at = coalesce(b.started_at, now())
    FROM due WHERE b.id = due.id
    RETURNING b.*
$$;

GRANT SELECT, INSERT, UPDATE ON ingest.batches, ingest.batch_chunks TO stentor_ingest;
GRANT SELECT, INSERT ON ingest.batch_parts TO stentor_ingest;
GRANT EXECUTE ON FUNCTION ingest.add_batch_part(text, integer, bytea, integer, integer[], bytea[], bigint),
    ingest.claim_batches(text, interval, integer) TO stentor_ingest;
