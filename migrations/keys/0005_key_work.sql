-- SPDX-License-Identifier: Apache-2.0
-- The work on keys (common/keywork): epochs are opened, emptied and ended, and all data keys are wrapped again. One process at a time:
-- the one that holds the advisory lock. Many keys are wrapped again into a new table, which takes the old one's place: half the time and
-- no dead rows. What changes in the old table meanwhile is listed by a trigger and carried over.

-- What an operator has asked for, and how the work stands.
CREATE TABLE keys.work (
    one           boolean     PRIMARY KEY DEFAULT true CHECK (one),
    rotate_number integer,     -- the epoch that was open when `stentor keys rotate` asked for the next one; 0: none was
    asked_at      timestamptz,
    looked_at     timestamptz,
    failure       text,        -- of the last look; null: it went well
    failed_since  timestamptz
);
INSERT INTO keys.work DEFAULT VALUES;
GRANT SELECT ON keys.work TO stentor_ingest, stentor_cli;

CREATE FUNCTION keys.ask_rotation() RETURNS integer
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE keys.work SET asked_at = now(), rotate_number = coalesce((SELECT number FROM keys.epochs WHERE closed_at IS NULL), 0)
          RETURNING rotate_number $$;

CREATE FUNCTION keys.note_work(at timestamptz, failed text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE keys.work SET looked_at = at, failure = left(failed, 1000),
                 failed_since = CASE WHEN failed IS NULL THEN NULL ELSE coalesce(failed_since, at) END $$;

-- ---- epochs ----

-- This one wraps from now on. Its file is durable by now, and `current` names it.
CREATE FUNCTION keys.open_epoch(new_number integer, new_id bytea, at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF new_number <= (SELECT max(number) FROM keys.epochs) THEN
        RAISE EXCEPTION 'epoch % is not the next one', new_number USING ERRCODE = 'check_violation';
    END IF;
    UPDATE keys.epochs SET closed_at = at WHERE closed_at IS NULL;
    INSERT INTO keys.epochs (number, key_id, opened_at) VALUES (new_number, new_id, at);
END
$$;

-- true: the closed epoch wraps no data key any more, nor will. Who began an insert under it while it was open is waited for.
CREATE FUNCTION keys.empty_epoch(its_number integer, at timestamptz) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
DECLARE
    head bytea := (SELECT '\x0102'::bytea || key_id FROM keys.epochs WHERE number = its_number AND closed_at IS NOT NULL);
BEGIN
    LOCK TABLE keys.data_keys IN SHARE MODE;
    IF head IS NULL OR EXISTS (SELECT FROM keys.data_keys d WHERE d.wrapped IS NOT NULL
                               AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) = head) THEN
        RETURN false;
    END IF;
    UPDATE keys.epochs SET emptied_at = at WHERE number = its_number AND emptied_at IS NULL;
    RETURN true;
END
$$;

-- Its file is gone. An hour at least: what a program has in its cache has ended by then.
CREATE FUNCTION keys.end_epoch(its_number integer, at timestamptz) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE keys.epochs SET destroyed_at = at
          WHERE number = its_number AND emptied_at <= at - interval '1 hour' AND destroyed_at IS NULL $$;

-- How many data keys another key than `wrapper` has wrapped; no more than at_most are counted. Null: `wrapper` is not the current one.
CREATE FUNCTION keys.count_left(wrapper bytea, at_most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
BEGIN
    IF wrapper IS DISTINCT FROM keys.current_wrapper() THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT count(*) FROM (
        (SELECT FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) < wrapper LIMIT at_most)
        UNION ALL
        (SELECT FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) > wrapper LIMIT at_most)
        UNION ALL
        (SELECT FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) IS NULL LIMIT at_most)
        LIMIT at_most) AS w);
END
$$;

-- ---- all data keys into a new table ----
-- begin; in one REPEATABLE READ transaction: read, copy ..., index; then catch_up until little is left; swap.

-- What was written in keys.data_keys since begin_bulk. Empty otherwise.
CREATE TABLE keys.data_key_changes (
    subject    bytea   NOT NULL,
    generation integer NOT NULL
);

CREATE FUNCTION keys.note_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO keys.data_key_changes VALUES (OLD.subject, OLD.generation);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO keys.data_key_changes VALUES (NEW.subject, NEW.generation);
    END IF;
    RETURN NULL;
END
$$;

-- As if none had begun.
CREATE FUNCTION keys.abandon_bulk() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'keys.data_keys'::regclass AND tgname = 'note_change') THEN
        DROP TRIGGER note_change ON keys.data_keys;
    END IF;
    DROP TABLE IF EXISTS keys.data_keys_next;
    IF EXISTS (SELECT FROM keys.data_key_changes) THEN
        TRUNCATE keys.data_key_changes;
    END IF;
END
$$;

CREATE FUNCTION keys.begin_bulk(wrapper bytea) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF wrapper IS DISTINCT FROM keys.current_wrapper() THEN
        RETURN false;
    END IF;
    IF (SELECT count(*) FROM pg_attribute WHERE attrelid = 'keys.data_keys'::regclass AND attnum > 0 AND NOT attisdropped) <> 7 THEN
        RAISE EXCEPTION 'keys.data_keys has columns that copy_bulk and catch_up_bulk do not know' USING ERRCODE = 'undefined_column';
    END IF;
    PERFORM keys.abandon_bulk();
    -- Waits for every writer: who writes after it is listed, who wrote before it is in the snapshot that follows.
    CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON keys.data_keys FOR EACH ROW EXECUTE FUNCTION keys.note_change();
    RETURN true;
END
$$;

-- Where each row is, and what is to be wrapped again; wrapped is null where nothing is.
CREATE FUNCTION keys.read_bulk() RETURNS refcursor
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    head constant bytea := keys.current_wrapper();
    rows refcursor := 'key_rows';
BEGIN
    CREATE TABLE keys.data_keys_next (LIKE keys.data_keys INCLUDING ALL EXCLUDING INDEXES);
    OPEN rows NO SCROLL FOR
        SELECT d.ctid, d.subject, d.generation,
               CASE WHEN length(d.wrapped) = 60 OR substr(d.wrapped, 1, 6) <> head THEN d.wrapped END
        FROM keys.data_keys d;
    RETURN rows;
END
$$;

-- The rows at these places, with the new wrapped forms; null: as they are. What the current key has wrapped already, or what was
-- destroyed, stays as it is whatever the caller gives.
CREATE FUNCTION keys.copy_bulk(places tid[], fresh bytea[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
    AS $$
DECLARE
    head constant bytea := keys.current_wrapper();
    done integer;
BEGIN
    INSERT INTO keys.data_keys_next (tenant_id, subject, generation, wrapped, created_at, destroyed_at, restricted_by)
    SELECT d.tenant_id, d.subject, d.generation,
           CASE WHEN length(i.form) = 66 AND substr(i.form, 1, 6) = head AND (length(d.wrapped) = 60 OR substr(d.wrapped, 1, 6) <> head)
                THEN i.form ELSE d.wrapped END,
           d.created_at, d.destroyed_at, d.restricted_by
    FROM unnest(places, fresh) AS i (place, form) JOIN keys.data_keys d ON d.ctid = i.place;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;

-- Every row is there; from here on only the rows that changed since are missing.
CREATE FUNCTION keys.index_bulk() RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET maintenance_work_mem = '256MB'
    AS $$
DECLARE
    part record;
    copied constant bigint := (SELECT count(*) FROM keys.data_keys_next);
BEGIN
    IF copied <> (SELECT count(*) FROM keys.data_keys) THEN
        RAISE EXCEPTION 'the new table of data keys has % rows, the old one another number', copied USING ERRCODE = 'data_corrupted';
    END IF;
    ALTER TABLE keys.data_keys_next ADD CONSTRAINT data_keys_next_pkey PRIMARY KEY (subject, generation);
    CREATE INDEX data_keys_next_wrapper ON keys.data_keys_next ((CASE WHEN length(wrapped) <> 60 THEN substr(wrapped, 1, 6) END))
        WHERE wrapped IS NOT NULL;
    PERFORM stentor.isolate('keys.data_keys_next');
    FOR part IN SELECT unnest(reloptions) AS setting FROM pg_class WHERE oid = 'keys.data_keys'::regclass LOOP
        EXECUTE format('ALTER TABLE keys.data_keys_next SET (%s)', part.setting);
    END LOOP;
    FOR part IN SELECT a.privilege_type, stentor.grantee_name(a.grantee) AS grantee FROM pg_class c, aclexplode(c.relacl) a
                WHERE c.oid = 'keys.data_keys'::regclass AND a.grantee <> c.relowner LOOP
        EXECUTE format('GRANT %s ON keys.data_keys_next TO %s', part.privilege_type, part.grantee);
    END LOOP;
    ANALYZE keys.data_keys_next;
    RETURN copied;
END
$$;

-- Carries over what has changed so far; how many changes that were.
CREATE FUNCTION keys.catch_up_bulk() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
DECLARE
    subjects bytea[];
    generations integer[];
BEGIN
    WITH gone AS (DELETE FROM keys.data_key_changes RETURNING subject, generation)
    SELECT array_agg(subject), array_agg(generation) INTO subjects, generations FROM (SELECT DISTINCT subject, generation FROM gone) AS g;
    IF subjects IS NULL THEN
        RETURN 0;
    END IF;
    DELETE FROM keys.data_keys_next n USING unnest(subjects, generations) AS i (subject, generation)
    WHERE n.subject = i.subject AND n.generation = i.generation;
    INSERT INTO keys.data_keys_next (tenant_id, subject, generation, wrapped, created_at, destroyed_at, restricted_by)
    SELECT d.tenant_id, d.subject, d.generation, d.wrapped, d.created_at, d.destroyed_at, d.restricted_by
    FROM unnest(subjects, generations) AS i (subject, generation)
    JOIN keys.data_keys d ON d.subject = i.subject AND d.generation = i.generation;
    RETURN cardinality(subjects);
END
$$;

-- The new table takes the old one's place, with its names. All others wait meanwhile: a few milliseconds.
CREATE FUNCTION keys.swap_bulk() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
DECLARE
    late integer;
BEGIN
    IF to_regclass('keys.data_keys_next_pkey') IS NULL THEN
        RAISE EXCEPTION 'the new table of data keys is not complete' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    LOCK TABLE keys.data_keys IN ACCESS EXCLUSIVE MODE;
    late := keys.catch_up_bulk();
    DROP TABLE keys.data_keys;
    ALTER TABLE keys.data_keys_next RENAME TO data_keys;
    ALTER TABLE keys.data_keys RENAME CONSTRAINT data_keys_next_pkey TO data_keys_pkey;
    ALTER INDEX keys.data_keys_next_wrapper RENAME TO data_keys_wrapper;
    RETURN late;
END
$$;

GRANT EXECUTE ON FUNCTION keys.note_work(timestamptz, text), keys.open_epoch(integer, bytea, timestamptz),
    keys.empty_epoch(integer, timestamptz), keys.end_epoch(integer, timestamptz), keys.count_left(bytea, integer), keys.abandon_bulk(),
    keys.begin_bulk(bytea), keys.read_bulk(), keys.copy_bulk(tid[], bytea[]), keys.index_bulk(), keys.catch_up_bulk(), keys.swap_bulk()
    TO stentor_ingest;
GRANT EXECUTE ON FUNCTION keys.ask_rotation() TO stentor_cli;
