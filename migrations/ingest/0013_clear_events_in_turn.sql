-- SPDX-License-Identifier: Apache-2.0
-- An event in clear that cannot be sealed (it would be too large) does not hold up the later ones: what was left over waits a while, behind what was
-- not tried yet.

CREATE OR REPLACE FUNCTION ingest.claim_clear_events(past bigint, lease interval, at_most integer)
    RETURNS TABLE (sequence bigint, stored_at timestamptz, copied boolean)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ WITH due AS (
              SELECT c.sequence FROM ingest.clear_events c
              WHERE (c.claimed_until IS NULL OR c.claimed_until < now()) AND (c.copied_at IS NULL OR c.sequence <= past)
              ORDER BY c.claimed_until NULLS FIRST, c.sequence LIMIT least(at_most, 1000) FOR UPDATE SKIP LOCKED)
          UPDATE ingest.clear_events c SET claimed_until = now() + lease FROM due WHERE c.sequence = due.sequence
          RETURNING c.sequence, c.stored_at, c.copied_at IS NOT NULL $$;

CREATE OR REPLACE FUNCTION ingest.end_clear_events(copied bigint[], gone bigint[], left_over bigint[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE ingest.clear_events SET copied_at = now(), claimed_until = NULL WHERE sequence = ANY (copied);
          UPDATE ingest.clear_events SET claimed_until = now() + interval '5 seconds' WHERE sequence = ANY (left_over);
          DELETE FROM ingest.clear_events WHERE sequence = ANY (gone) $$;
