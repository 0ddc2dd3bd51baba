-- SPDX-License-Identifier: Apache-2.0
-- Events that came in clear: a copy first, the original when every reader is past it, and what cannot be done holds nothing else up.
SELECT no_plan();

CREATE FUNCTION pg_temp.claimed(past bigint) RETURNS bigint[] LANGUAGE sql
    AS $$ SELECT array_agg(sequence ORDER BY sequence) FROM ingest.claim_clear_events(past, interval '1 minute', 2) $$;

SELECT ingest.note_clear_events(ARRAY[1, 2, 3], ARRAY[now(), now(), now()]);
SELECT is(pg_temp.claimed(0), ARRAY[1, 2]::bigint[], 'the first are claimed');
SELECT is(pg_temp.claimed(0), ARRAY[3]::bigint[], 'and by no other process');
SELECT ingest.end_clear_events(ARRAY[3], '{}', ARRAY[1, 2]);
SELECT is(pg_temp.claimed(0), NULL, 'what was left over waits, a copied one for its readers');
SELECT ingest.note_clear_events(ARRAY[4], ARRAY[now()]);
UPDATE ingest.clear_events SET claimed_until = now() - interval '1 second' WHERE sequence < 3;
SELECT is(pg_temp.claimed(3), ARRAY[3, 4]::bigint[], 'what was left over comes behind what may be erased and what was not tried');
SELECT is(pg_temp.claimed(3), ARRAY[1, 2]::bigint[], 'and then again');
SELECT ingest.end_clear_events('{}', ARRAY[1, 2, 3, 4], '{}');
SELECT is_empty('SELECT FROM ingest.clear_events', 'what is gone has no row');
SELECT * FROM finish();
