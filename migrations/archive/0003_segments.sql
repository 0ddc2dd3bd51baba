-- SPDX-License-Identifier: Apache-2.0
-- The log in object storage: for each stream, windows of sequences that follow each other without a gap; each window is one to three
-- segments, one for each retention class that occurs in it. What is missing between two windows has a row in holes. Of tenants it has
-- names, so that a hold keeps the segments with their events.

-- Up to where each stream is stored. Moved by archive.store_window alone, which is the fence: a process that does not know the last window
-- stores none.
CREATE TABLE archive.log_positions (
    stream            text        COLLATE "C" PRIMARY KEY,
    window_number     bigint      NOT NULL DEFAULT 0 CHECK (window_number >= 0), -- of the last one
    sequence          bigint      NOT NULL DEFAULT 0 CHECK (sequence >= 0),
    stream_created_at timestamptz,
    stored_at         timestamptz,                     -- of the message with that sequence; null: not known
    active            boolean     NOT NULL DEFAULT true, -- false: archiving is off, and the stream may be trimmed without it
    updated_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE archive.segments (
    stream            text        COLLATE "C" NOT NULL REFERENCES archive.log_positions,
    window_number     bigint      NOT NULL CHECK (window_number > 0),
    class             text        COLLATE "C" NOT NULL CHECK (class IN ('R', 'S', 'B')),
    stream_created_at timestamptz NOT NULL,
    first_sequence    bigint      NOT NULL CHECK (first_sequence > 0), -- of the window: the same for all its classes
    last_sequence     bigint      NOT NULL,
    events            bigint      NOT NULL CHECK (events > 0),
    min_at            timestamptz NOT NULL,
    max_at            timestamptz NOT NULL,
    key               text        COLLATE "C" NOT NULL UNIQUE,
    bytes             bigint      NOT NULL CHECK (bytes > 0),
    sha256            bytea       NOT NULL CHECK (length(sha256) = 32),
    version           text,                               -- of the object, where the bucket keeps versions
    tenants           text[]      COLLATE "C",            -- whose events it holds; null: not known, so any tenant's
    verified_at       timestamptz NOT NULL DEFAULT now(), -- read back and compared before the row was written
    deleted_at        timestamptz,                        -- its time, or its class's, is over
    PRIMARY KEY (stream, window_number, class),
    CHECK (first_sequence <= last_sequence)
);
CREATE INDEX segments_by_time ON archive.segments (stream, max_at);
CREATE INDEX segments_there ON archive.segments (stream, class, max_at) WHERE deleted_at IS NULL;

-- Why a segment may not be deleted; null: it may. It is kept whole for a hold of any tenant in it, also for one of a single person: which
-- people are in it only its sealed content says.
CREATE FUNCTION archive.segment_held(tenants text[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('hold %s of %s: %s', h.id, h.held_by, h.ground) FROM archive.holds h
    WHERE h.released_at IS NULL AND (h.until IS NULL OR h.until > now()) AND h.unit IS NULL AND (tenants IS NULL OR h.tenant = ANY (tenants))
    ORDER BY h.id LIMIT 1
    $$;

-- What is stored nowhere. removed: the stream lost it before it was stored (age, size, by hand). before: it was gone before archiving
-- began. recreated: another stream of the same name follows; what the former still held is missing. tail_lost: the server lost its newest
-- messages; the window's sequences come once more with other messages, and nothing else is missing. unstorable: a message that no segment
-- takes.
CREATE TABLE archive.holes (
    stream         text        COLLATE "C" NOT NULL REFERENCES archive.log_positions,
    window_number  bigint      NOT NULL CHECK (window_number > 0), -- of the window that follows it
    first_sequence bigint      NOT NULL,
    last_sequence  bigint      NOT NULL,
    reason         text        COLLATE "C" NOT NULL
        CHECK (reason IN ('removed', 'before', 'recreated', 'tail_lost', 'unstorable')),
    found_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream, window_number, first_sequence, reason)
);

-- Archiving of these streams is on (an empty list: off): their positions, with a row for each.
CREATE FUNCTION archive.log_begin(streams text[])
    RETURNS TABLE (stream text, window_number bigint, sequence bigint, stream_created_at timestamptz, stored_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO archive.log_positions AS p (stream) SELECT s FROM unnest(streams) AS s ON CONFLICT DO NOTHING;
    UPDATE archive.log_positions p SET active = (p.stream = ANY (streams)), updated_at = now()
        WHERE p.active <> (p.stream = ANY (streams));
    RETURN QUERY SELECT p.stream, p.window_number, p.sequence, p.stream_created_at, p.stored_at
        FROM archive.log_positions p WHERE p.active;
END
$$;

-- One window, whose segments are stored and verified. Refused when it is not the one that follows.
CREATE FUNCTION archive.store_window(of_stream text, number bigint, created timestamptz, first bigint, last bigint, last_at timestamptz,
    classes text[], keys text[], events bigint[], bytes bigint[], hashes bytea[], min_at timestamptz[], max_at timestamptz[],
    versions text[], tenants text[])
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    p archive.log_positions;
BEGIN
    SELECT * INTO p FROM archive.log_positions l WHERE l.stream = of_stream FOR UPDATE;
    IF NOT FOUND OR p.window_number <> number - 1 OR NOT p.active THEN
        RAISE EXCEPTION 'archive.store_window: window % of stream ''%'' does not follow %', number, of_stream, p.window_number
            USING ERRCODE = 'check_violation';
    ELSIF first <> p.sequence + 1 AND NOT EXISTS (SELECT FROM archive.holes h WHERE h.stream = of_stream AND h.window_number = number
                                                  AND h.reason = 'tail_lost') THEN
        RAISE EXCEPTION 'archive.store_window: window % of stream ''%'' begins at %, after %', number, of_stream, first, p.sequence
            USING ERRCODE = 'check_violation';
    ELSIF coalesce(cardinality(classes), 0) = 0 THEN
        RAISE EXCEPTION 'archive.store_window: window % of stream ''%'' has no segment', number, of_stream USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO archive.segments (stream, window_number, class, stream_created_at, first_sequence, last_sequence, events, min_at, max_at,
                                  key, bytes, sha256, version, tenants)
    SELECT of_stream, number, s.class, created, first, last, s.events, s.min_at, s.max_at, s.key, s.bytes, s.hash, s.version,
           string_to_array(s.tenants, ',')
    FROM unnest(classes, keys, events, bytes, hashes, min_at, max_at, versions, tenants)
         AS s (class, key, events, bytes, hash, min_at, max_at, version, tenants);
    UPDATE archive.log_positions l SET window_number = number, sequence = last, stream_created_at = created, stored_at = last_at,
        updated_at = now() WHERE l.stream = of_stream;
END
$$;

-- What is missing before the next window, and the position behind it.
CREATE FUNCTION archive.note_hole(of_stream text, number bigint, first bigint, last bigint, of_reason text, created timestamptz)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM FROM archive.log_positions l WHERE l.stream = of_stream AND l.window_number = number - 1 AND l.active FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.note_hole: window % of stream ''%'' is not the next', number, of_stream USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO archive.holes (stream, window_number, first_sequence, last_sequence, reason)
    VALUES (of_stream, number, first, last, of_reason)
    ON CONFLICT ON CONSTRAINT holes_pkey DO UPDATE SET last_sequence = greatest(archive.holes.last_sequence, excluded.last_sequence);
    IF of_reason <> 'tail_lost' THEN
        UPDATE archive.log_positions l
        SET sequence = CASE of_reason WHEN 'recreated' THEN 0 ELSE last END, stored_at = NULL, stream_created_at = created, updated_at = now()
        WHERE l.stream = of_stream;
    END IF;
END
$$;

-- Segments whose time is over were deleted in object storage. What is true now is made of PEOPLE, CONFIG and AUDIT: they have no end.
CREATE FUNCTION archive.segments_deleted(of_keys text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF EXISTS (SELECT FROM archive.segments s WHERE s.key = ANY (of_keys) AND s.stream IN ('PEOPLE', 'CONFIG', 'AUDIT')) THEN
        RAISE EXCEPTION 'archive.segments_deleted: a segment of PEOPLE, CONFIG or AUDIT does not end' USING ERRCODE = 'check_violation';
    END IF;
    UPDATE archive.segments s SET deleted_at = now() WHERE s.key = ANY (of_keys) AND s.deleted_at IS NULL;
END
$$;

-- Why the log of a stream is not whole; no rows: it is. A gap that has no row in holes is one, too.
CREATE FUNCTION archive.log_faults() RETURNS TABLE (stream text, first_sequence bigint, last_sequence bigint, reason text, found_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT h.stream, h.first_sequence, h.last_sequence, h.reason, h.found_at FROM archive.holes h WHERE h.reason <> 'tail_lost'
    UNION ALL
    SELECT w.stream, w.before + 1, w.first_sequence - 1, 'no row', NULL
    FROM (SELECT DISTINCT s.stream, s.window_number, s.first_sequence,
                 lag(s.last_sequence) OVER (PARTITION BY s.stream ORDER BY s.window_number) AS before
          FROM (SELECT DISTINCT g.stream, g.window_number, g.first_sequence, g.last_sequence FROM archive.segments g) s) w
    WHERE w.first_sequence > w.before + 1
      AND NOT EXISTS (SELECT FROM archive.holes h WHERE h.stream = w.stream AND h.window_number = w.window_number)
    $$;

GRANT SELECT ON archive.log_positions, archive.segments, archive.holes TO stentor_archiver, stentor_cli;
GRANT EXECUTE ON FUNCTION archive.log_begin(text[]),
    archive.store_window(text, bigint, timestamptz, bigint, bigint, timestamptz, text[], text[], bigint[], bigint[], bytea[], timestamptz[],
                         timestamptz[], text[], text[]),
    archive.note_hole(text, bigint, bigint, bigint, text, timestamptz),
    archive.segments_deleted(text[]), archive.segment_held(text[]) TO stentor_archiver;
GRANT EXECUTE ON FUNCTION archive.log_faults() TO stentor_archiver, stentor_cli;
