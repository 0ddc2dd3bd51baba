-- SPDX-License-Identifier: Apache-2.0
-- The same doors for batches without a look at all that ever ended: a mark says whose members are gone, and an index has the ended
-- ones by mark and end, so that a statement costs what it drops.

ALTER TABLE ingest.batches ADD COLUMN members_dropped boolean NOT NULL DEFAULT false;
CREATE INDEX batches_ended ON ingest.batches (members_dropped, (coalesce(ended_at, started_at, created_at)))
    WHERE status IN ('completed', 'cancelled', 'failed');

-- The parts and chunks of batches that have ended. A draft has no end. Of the oldest that have members still; `go_on` says that there
-- are more of them, each of which is marked when nothing of it is left.
CREATE OR REPLACE FUNCTION ingest.drop_batch_members(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    over text[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    SELECT array_agg(o.id) INTO over FROM (
        SELECT b.id FROM ingest.batches b
        WHERE NOT b.members_dropped AND b.status IN ('completed', 'cancelled', 'failed')
          AND coalesce(b.ended_at, b.started_at, b.created_at) < cutoff AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
        ORDER BY coalesce(b.ended_at, b.started_at, b.created_at) LIMIT at_most) o;
    WITH chunks AS MATERIALIZED (
        SELECT c.batch_id, c.number FROM ingest.batch_chunks c WHERE c.batch_id = ANY (over) LIMIT at_most),
    parts AS MATERIALIZED (
        SELECT p.batch_id, p.part FROM ingest.batch_parts p WHERE p.batch_id = ANY (over) LIMIT at_most),
    gone AS (DELETE FROM ingest.batch_chunks d USING chunks WHERE (d.batch_id, d.number) = (chunks.batch_id, chunks.number) RETURNING 1),
    gone_parts AS (DELETE FROM ingest.batch_parts d USING parts WHERE (d.batch_id, d.part) = (parts.batch_id, parts.part) RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM gone_parts) INTO dropped;
    UPDATE ingest.batches b SET members_dropped = true
    WHERE b.id = ANY (over) AND NOT EXISTS (SELECT FROM ingest.batch_chunks c WHERE c.batch_id = b.id)
      AND NOT EXISTS (SELECT FROM ingest.batch_parts p WHERE p.batch_id = b.id);
    go_on := CASE WHEN dropped >= at_most OR cardinality(over) >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

CREATE OR REPLACE FUNCTION ingest.drop_batches(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
        SET enable_mergejoin = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
    old text[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('ingest.retention')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    SELECT array_agg(o.id) INTO old FROM (
        SELECT b.id FROM ingest.batches b
        WHERE b.members_dropped AND b.status IN ('completed', 'cancelled', 'failed')
          AND coalesce(b.ended_at, b.started_at, b.created_at) < cutoff AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
        ORDER BY coalesce(b.ended_at, b.started_at, b.created_at) LIMIT at_most) o;
    DELETE FROM ingest.batches b WHERE b.id = ANY (old);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped >= at_most THEN 'more' END;
    RETURN NEXT;
END
$$;
