-- SPDX-License-Identifier: Apache-2.0
-- While the log is archived, trimming removes only what a segment holds, too. A stream that archiving knows and has stored nothing of yet
-- has position 0: nothing goes. Not so content and callbacks: sending would stand still once their streams are full, if storage is away.
CREATE OR REPLACE FUNCTION digest_flusher.projected() RETURNS TABLE (stream text, sequence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT f.stream, min(f.sequence) FROM (
        SELECT p.stream, p.sequence FROM archiver.positions p
        UNION ALL
        SELECT l.stream, l.sequence FROM archive.log_positions l
        WHERE l.active AND l.stream <> 'INBOUND' AND NOT starts_with(l.stream, 'RENDERED_')) f
    GROUP BY f.stream
    $$;
