-- SPDX-License-Identifier: Apache-2.0
-- How far every projection has read each stream: what the clock may trim of a stream that is nearly full.

CREATE FUNCTION digest_flusher.projected() RETURNS TABLE (stream text, sequence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT p.stream, min(p.sequence) FROM archiver.positions p GROUP BY p.stream $$;
REVOKE ALL ON FUNCTION digest_flusher.projected() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION digest_flusher.projected() TO stentor_digest_flusher;
