-- SPDX-License-Identifier: Apache-2.0
-- Events that were published in clear straight into EVENTS (services/ingest/reseal): each is stored again, sealed, and its original is deleted
-- once every reader is past it. A row says where it stands in the stream and holds nothing of it.

CREATE TABLE ingest.clear_events (
    sequence      bigint      PRIMARY KEY,
    stored_at     timestamptz NOT NULL, -- another one: the stream was lost and made again, and this is another event
    noted_at      timestamptz NOT NULL DEFAULT now(),
    copied_at     timestamptz,          -- its sealed copy is stored
    claimed_until timestamptz           -- a process is at it
);
CREATE INDEX clear_events_noted ON ingest.clear_events (noted_at);

-- Before the events are acknowledged.
CREATE FUNCTION ingest.note_clear_events(sequences bigint[], times timestamptz[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ INSERT INTO ingest.clear_events AS c (sequence, stored_at)
          SELECT i.sequence, i.stored_at FROM unnest(sequences, times) AS i (sequence, stored_at) ORDER BY i.sequence
          ON CONFLICT (sequence) DO UPDATE SET stored_at = excluded.stored_at, copied_at = NULL, claimed_until = NULL
          WHERE c.stored_at <> excluded.stored_at $$;

-- Those that have no copy yet, and those whose original every reader is past (`past`, of the stream). Any number of processes ask.
CREATE FUNCTION ingest.claim_clear_events(past bigint, lease interval, at_most integer)
    RETURNS TABLE (sequence bigint, stored_at timestamptz, copied boolean)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ WITH due AS (
              SELECT c.sequence FROM ingest.clear_events c
              WHERE (c.claimed_until IS NULL OR c.claimed_until < now()) AND (c.copied_at IS NULL OR c.sequence <= past)
              ORDER BY c.sequence LIMIT least(at_most, 1000) FOR UPDATE SKIP LOCKED)
          UPDATE ingest.clear_events c SET claimed_until = now() + lease FROM due WHERE c.sequence = due.sequence
          RETURNING c.sequence, c.stored_at, c.copied_at IS NOT NULL $$;

-- Ends a claim: copies that are stored; originals that are gone; the rest is tried again.
CREATE FUNCTION ingest.end_clear_events(copied bigint[], gone bigint[], left_over bigint[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE ingest.clear_events SET copied_at = now(), claimed_until = NULL WHERE sequence = ANY (copied);
          UPDATE ingest.clear_events SET claimed_until = NULL WHERE sequence = ANY (left_over);
          DELETE FROM ingest.clear_events WHERE sequence = ANY (gone) $$;

-- How many wait, and for how long the oldest has.
CREATE FUNCTION ingest.clear_events_waiting(OUT waiting bigint, OUT oldest_s double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*), coalesce(extract(epoch FROM now() - min(noted_at)), 0) FROM ingest.clear_events $$;

GRANT EXECUTE ON FUNCTION ingest.note_clear_events(bigint[], timestamptz[]), ingest.claim_clear_events(bigint, interval, integer),
    ingest.end_clear_events(bigint[], bigint[], bigint[]), ingest.clear_events_waiting() TO stentor_ingest;
