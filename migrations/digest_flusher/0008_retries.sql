-- SPDX-License-Identifier: Apache-2.0
-- How many mails wait for their next attempt, and since when the oldest should have been sent (caused_at: of a retry the time that
-- it was accepted for): for metrics. One walk of an index that only retries are in; without the index it would be one of all rows.
CREATE INDEX due_work_retries ON digest_flusher.due_work (caused_at) WHERE reason = 'retry';

CREATE FUNCTION digest_flusher.retries(OUT waiting bigint, OUT oldest timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*), min(caused_at) FROM digest_flusher.due_work WHERE reason = 'retry' $$;
GRANT EXECUTE ON FUNCTION digest_flusher.retries() TO stentor_digest_flusher;
